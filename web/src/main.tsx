/** Begins the page. */
import { render } from 'preact';
import { App } from './app.tsx';
import { useSavedTheme } from './theme.ts';
import './style.css';

useSavedTheme();
render(<App />, document.getElementById('page') as HTMLElement);
