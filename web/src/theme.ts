/** Light, dark, or as the system has it. */

export type Theme = 'system' | 'light' | 'dark';

const key = 'headgate-theme';

export function savedTheme(): Theme {
  const saved = localStorage.getItem(key);
  return saved === 'light' || saved === 'dark' ? saved : 'system';
}

export function useSavedTheme(): void {
  apply(savedTheme());
}

export function changeTheme(theme: Theme): void {
  localStorage.setItem(key, theme);
  apply(theme);
  // Charts are painted with colours that they have read before.
  window.dispatchEvent(new Event('headgate-theme'));
}

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** Calls back whenever colours may have changed; until the function that it returns is called. */
export function onThemeChange(then: () => void): () => void {
  const media = window.matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', then);
  window.addEventListener('headgate-theme', then);
  return () => {
    media.removeEventListener('change', then);
    window.removeEventListener('headgate-theme', then);
  };
}

/** The value of a colour of the style sheet. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
