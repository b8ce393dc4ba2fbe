/** A tile: its title, its numbers, and behind the question mark what it is, what is normal, what is bad, and what to do. */
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { helpOf, type Judgement, type SubjectKind, type TileId } from './tile-help.ts';

/** The kind of subject that the tiles show: help names its metrics. */
export const SubjectContext = createContext<SubjectKind>('pooler');

export interface CardProps {
  readonly id: TileId;
  readonly title: string;
  readonly aside?: ComponentChildren;
  /** `whole`: as wide as the page; otherwise as wide as its column. */
  readonly size?: 'whole' | undefined;
  readonly children: ComponentChildren;
}

export function Card({ id, title, aside, size, children }: CardProps) {
  const [isOpen, setOpen] = useState(false);
  const kind = useContext(SubjectContext);
  return (
    <section class={`card ${size ?? ''}`} id={id} aria-labelledby={`${id}-title`} tabIndex={-1}>
      <header class="card-head">
        <h2 id={`${id}-title`}>{title}</h2>
        <button
          type="button"
          class="help-button"
          aria-expanded={isOpen}
          aria-controls={`${id}-help`}
          aria-label={`About ${title}`}
          onClick={() => setOpen(!isOpen)}
        >
          ?
        </button>
        <div class="card-aside">{aside}</div>
      </header>
      <div class="help" id={`${id}-help`} hidden={!isOpen}>
        {isOpen && <Help id={id} kind={kind} />}
      </div>
      {children}
    </section>
  );
}

function Help({ id, kind }: { readonly id: TileId; readonly kind: SubjectKind }) {
  const { what, own, metrics } = helpOf(id, kind);
  return (
    <>
      <p>{what}</p>
      {own !== undefined && <Judged judgement={own} />}
      {metrics.length > 0 && (
        <div class="help-metrics">
          {metrics.map((metric) => (
            <div class="help-metric" key={metric.name}>
              <h3>
                <code>{metric.name}</code> <span class="muted">{metric.unit}</span>
              </h3>
              <p>{metric.help}</p>
              <Judged judgement={metric} />
            </div>
          ))}
        </div>
      )}
    </>
  );
}

function Judged({ judgement: { normal, bad, action } }: { readonly judgement: Judgement }) {
  return (
    <dl>
      <dt>Normal</dt>
      <dd>{normal}</dd>
      {bad !== undefined && (
        <>
          <dt>Bad</dt>
          <dd>{bad}</dd>
        </>
      )}
      {action !== undefined && (
        <>
          <dt>What to do</dt>
          <dd>{action}</dd>
        </>
      )}
    </dl>
  );
}

interface ToggleProps<Option extends string> {
  readonly name: string;
  readonly legend: string;
  readonly options: readonly Option[];
  readonly chosen: Option;
  readonly choose: (option: Option) => void;
}

/** One of a few, all of which are seen. */
export function Toggle<Option extends string>(props: ToggleProps<Option>) {
  const { name, legend, options, chosen, choose } = props;
  return (
    <fieldset class="toggle">
      <legend class="visually-hidden">{legend}</legend>
      {options.map((each) => (
        <label key={each} class={chosen === each ? 'chosen' : ''}>
          <input type="radio" name={name} checked={chosen === each} onChange={() => choose(each)} />
          {each}
        </label>
      ))}
    </fieldset>
  );
}

/** Where there is nothing to show, it is said why. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** A table in a frame that can be moved sideways, by keys, too. */
export function Table({
  label,
  heads,
  children,
}: {
  readonly label: string;
  readonly heads: readonly (readonly [title: string, isNumber?: boolean])[];
  readonly children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled must be reachable by keys.
    <section class="scroll" aria-label={`Table: ${label}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {heads.map(([title, isNumber]) => (
              <th key={title} scope="col" class={isNumber ? 'number' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
