import './styles/theme.css';
import './styles/base.css';
import {render} from 'preact';
import {watchForFailure} from './view/failure';
import {startScene} from './view/pane/scene';
import {startFollowingSince} from './view/comparison/steps';
import {startFollowingScalars} from './view/state/axis';
import {startAsking} from './view/state/live';
import {watchForQuiet} from './view/state/quiet';
import {startMirror} from './view/state/mirror';
import {startShowing} from './view/state/shown';
import {startFollowingKept} from './view/tensors/store';
import {startDivergence} from './view/comparison/divergence';
import {startComparing} from './view/comparison/state';
import {startElsewhere} from './view/findings/elsewhere';
import {startFindings} from './view/findings/start';
import {Root} from './view/flow/Root';
import {startTheme} from './view/header/theme';
import {startForgetting} from './view/xray/face';

watchForFailure();
startMirror();
startTheme();
startShowing();
startFollowingScalars();
startFollowingSince();
startComparing();
startDivergence();
startAsking();
watchForQuiet();
startScene();
startFollowingKept();
startFindings();
startElsewhere();
startForgetting();

const place = document.getElementById('app') as HTMLElement;
place.replaceChildren(); // an exported page says there that it is being opened, and would go on saying so below the window
render(<Root />, place);
