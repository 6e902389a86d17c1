import './styles/theme.css';
import './styles/base.css';
import {render} from 'preact';
import {startScene} from './view/pane/scene';
import {startFollowingScalars} from './view/state/axis';
import {startAsking} from './view/state/live';
import {startMirror} from './view/state/mirror';
import {startShowing} from './view/state/shown';
import {App} from './view/App';
import {startTheme} from './view/header/theme';

startMirror();
startTheme();
startShowing();
startFollowingScalars();
startAsking();
startScene();
render(<App />, document.getElementById('app') as HTMLElement);
