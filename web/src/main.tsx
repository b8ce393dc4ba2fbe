/** Begins the page. */
import { render } from 'preact';
import { App } from './app.tsx';
import { useSavedTheme } from './theme.ts';
import './styles/colours.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/budget.css';
import './styles/figures.css';
import './styles/tables.css';
import './styles/dialogs.css';
import './styles/login.css';
import './styles/loading.css';
import './styles/narrow.css';

useSavedTheme();
render(<App />, document.getElementById('page') as HTMLElement);
