/** A question before something is done, and a short word after it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Action } from '../../src/dashboard/source.ts';
import { questionFor } from './actions.ts';
import { act } from './api.ts';

interface QuestionProps {
  readonly subject: string;
  readonly action: Action;
  readonly done: (message: string | undefined) => void;
}

export function QuestionDialog({ subject, action, done }: QuestionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState('');
  const { title, text, yes, isDangerous } = questionFor(action);
  useEffect(() => dialog.current?.showModal(), []);
  const run = async (): Promise<void> => {
    setRunning(true);
    setProblem('');
    try {
      await act(subject, action);
      done(`${title.replace(/\?$/, '')}: done.`);
    } catch (error) {
      setProblem((error as Error).message);
      setRunning(false);
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="question" onClose={() => done(undefined)}>
      <h2 id="question">{title}</h2>
      {text !== '' && <p>{text}</p>}
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button
          type="button"
          class={isDangerous ? 'primary danger' : 'primary'}
          disabled={isRunning}
          onClick={() => void run()}
        >
          {isRunning ? 'Working…' : yes}
        </button>
      </div>
    </dialog>
  );
}

interface ValueProps {
  readonly title: string;
  readonly label: string;
  readonly value: number;
  readonly least: number;
  readonly chosen: (value: string) => void;
  readonly closed: () => void;
}

/** Asks for a number: a weight, the size of a budget. */
export function ValueDialog({ title, label, value, least, chosen, closed }: ValueProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(String(value));
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="value" onClose={closed}>
      <h2 id="value">{title}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          chosen(text);
        }}
      >
        <label>
          {label}
          <input
            required
            type="number"
            min={least}
            step={least}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <FormButtons cancel={() => dialog.current?.close()} />
      </form>
    </dialog>
  );
}

const common = [
  'max_server_connections',
  'default_pool_size',
  'max_db_connections',
  'max_user_connections',
  'max_client_conn',
  'reserve_pool_size',
  'query_wait_timeout',
  'query_timeout',
  'server_lifetime',
  'idle_transaction_timeout',
];

interface SettingProps {
  readonly chosen: (action: Action) => void;
  readonly closed: () => void;
}

/** Asks for a setting and its value: limits of budgets and pools, timeouts. */
export function SettingDialog({ chosen, closed }: SettingProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="setting" onClose={closed}>
      <h2 id="setting">Set a limit or timeout</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          chosen({ name: 'set', key, value });
        }}
      >
        <label>
          Setting
          <input
            required
            list="settings"
            autocomplete="off"
            spellcheck={false}
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </label>
        <datalist id="settings">
          {common.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label>
          Value
          <input
            required
            autocomplete="off"
            value={value}
            onInput={({ currentTarget }) => setValue(currentTarget.value)}
          />
        </label>
        <FormButtons cancel={() => dialog.current?.close()} />
      </form>
    </dialog>
  );
}

function FormButtons({ cancel }: { readonly cancel: () => void }) {
  return (
    <div class="buttons">
      <button type="button" onClick={cancel}>
        Cancel
      </button>
      <button type="submit" class="primary">
        Next
      </button>
    </div>
  );
}
