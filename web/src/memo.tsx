/** A component that is drawn again only when one of its properties is another one: most of the page stays the same each second. */
import { Component, type ComponentChild } from 'preact';

export function memo<Props extends object>(draw: (props: Props) => ComponentChild) {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const before = this.props as Readonly<Record<string, unknown>>;
      const entries = Object.entries(next);
      return (
        entries.length !== Object.keys(before).length ||
        entries.some(([key, value]) => !Object.is(before[key], value))
      );
    }

    override render(): ComponentChild {
      return draw(this.props as Props);
    }
  };
}
