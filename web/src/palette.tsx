/** All that can be reached and done, found by typing a few letters. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

export interface PaletteItem {
  readonly title: string;
  readonly hint: string;
  readonly run: () => void;
}

interface PaletteProps {
  readonly items: readonly PaletteItem[];
  readonly closed: () => void;
}

export function Palette({ items, closed }: PaletteProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const found = useMemo(() => {
    const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
    return items.filter(({ title, hint }) => {
      const whole = `${title} ${hint}`.toLowerCase();
      return parts.every((part) => whole.includes(part));
    });
  }, [text, items]);
  const chosen = Math.min(at, found.length - 1);
  const run = (item: PaletteItem | undefined): void => {
    if (item === undefined) return;
    dialog.current?.close();
    item.run();
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Commands"
      onClose={closed}
      onClick={({ target }) => {
        if (target === dialog.current) dialog.current?.close();
      }}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        if (step !== 0) {
          event.preventDefault();
          setAt(Math.max(0, Math.min(found.length - 1, chosen + step)));
        } else if (event.key === 'Enter') {
          event.preventDefault();
          run(found[chosen]);
        }
      }}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={found.length > 0 ? `command-${chosen}` : undefined}
        placeholder="Type a command"
        autocomplete="off"
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setAt(0);
        }}
      />
      <div id="commands" role="listbox" aria-label="Commands">
        {found.map((item, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above.
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the chosen one.
          <div
            key={item.title}
            id={`command-${i}`}
            role="option"
            aria-selected={i === chosen}
            class="palette-item"
            onClick={() => run(item)}
            onMouseMove={() => setAt(i)}
          >
            <span>{item.title}</span>
            <span class="muted">{item.hint}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="empty">No such command.</p>}
    </dialog>
  );
}
