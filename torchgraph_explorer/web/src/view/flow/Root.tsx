/** The graph and its panels; or the gradient flow, where a model is behind the server. */

import {App} from '../App';
import {FlowPage} from './FlowPage';
import {isFlowShown} from './state';

export function Root() {
  return isFlowShown.value ? <FlowPage /> : <App />;
}
