import {render} from 'preact';
import {startScene} from './graph/scene';
import {startFollowing} from './state/follow';
import {start} from './state/live';
import {startMirror} from './state/mirror';
import './styles/theme.css';
import './styles/base.css';
import './styles/app.css';
import './styles/graph.css';
import './styles/sidebar.css';
import {App} from './view/App';
import {startTheme} from './view/theme';

startMirror();
startTheme();
start();
startFollowing();
startScene();
render(<App />, document.getElementById('app') as HTMLElement);
