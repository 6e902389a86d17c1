"""The plugin: mounts the WSGI app of `torchgraph_explorer.server` in TensorBoard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tensorboard.plugins import base_plugin

from torchgraph_explorer.record.discovery import RunInfo
from torchgraph_explorer.server.embedding import embeddable_in_tensorboard
from torchgraph_explorer.server.response import App, Environment, Response, StartResponse, send
from torchgraph_explorer.server.routes import app
from torchgraph_tensorboard.background_scan import BackgroundScan
from torchgraph_tensorboard.gfile_filesystem import register_gfile
from torchgraph_tensorboard.logdir_runs import LogdirRuns, find_runs
from torchgraph_tensorboard.logdirs import logdirs_of
from torchgraph_tensorboard.metadata import PLUGIN_NAME
from torchgraph_tensorboard.missing_folders import markers_without_folder

ENTRY = "/index.js"
"""The module that TensorBoard imports into an empty page; it then calls the module's `render`."""

PAGE = "/app.html"
"""The viewer's page: a document of its own, so that its Content-Security-Policy is ours."""

ENTRY_MODULE = f"""\
export function render() {{
  const [, view = ''] = /[#&]p\\.{PLUGIN_NAME}\\.view=([^&]*)/.exec(parent.location.hash) ?? [];
  location.replace('.{PAGE}?host=tensorboard#' + decodeURIComponent(view));
}}
"""
"""Opens the viewer's page with the view that is in TensorBoard's address."""


class TorchgraphPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard ships no annotations
    """Our tab. TensorBoard waits for each of these methods, so all except the apps answer from memory."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Start looking for runs in the background."""
        super().__init__(context)
        logdirs, provider = logdirs_of(context.flags, context.logdir), context.data_provider
        register_gfile([logdir.path for logdir in logdirs])

        def find_all() -> list[RunInfo]:
            found = find_runs(logdirs)
            return [*found, *markers_without_folder(provider, known=[run.name for run in found])]

        self._scan = BackgroundScan(find_all)
        self._runs = LogdirRuns(logdirs, self._scan.latest)

    def get_plugin_apps(self) -> Mapping[str, App]:
        """The routes below `data/plugin/torchgraph`."""
        viewer = embeddable_in_tensorboard(mounted(app(self._runs)))
        return {ENTRY: entry_module, PAGE: viewer, "/assets/*": viewer, "/api/*": viewer}

    def is_active(self) -> bool:
        """Whether a run was found. TensorBoard also shows the tab if it has found a marker."""
        return self._scan.has_runs

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab's name and the address of its code."""
        return base_plugin.FrontendMetadata(es_module_path=ENTRY, tab_name="torchgraph", disable_reload=True)


def mounted(inner: App) -> App:
    """`inner`, with paths relative to our plugin's address."""

    def serve(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        before, name, path = environment.get("PATH_INFO", "").partition(f"/plugin/{PLUGIN_NAME}/")
        moved: dict[str, Any] = {
            "SCRIPT_NAME": environment.get("SCRIPT_NAME", "") + before + name.rstrip("/"),
            "PATH_INFO": "/" if f"/{path}" == PAGE else f"/{path}",
        }
        return inner({**environment, **moved}, start_response)

    return serve


def entry_module(environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
    """Serves `ENTRY`."""
    headers = (("Cache-Control", "no-cache"),)
    module = Response(200, "text/javascript; charset=utf-8", ENTRY_MODULE.encode(), headers)
    return send(module, environment, start_response)
