"""A W&B backend on the loopback interface, as far as the real client asks one.

It answers what wandb 0.31 sends online for runs, tables, media, artifacts, presets and reports, keeps everything in
memory, and notes what it could not answer. The client needs each field that is there.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlparse

Json = dict[str, Any]

ENTITY = "ent"


@dataclass
class StoredRun:
    """One run as the server has it."""

    name: str
    entity: str
    project: str
    display_name: str
    config: Json = field(default_factory=dict)
    summary: Json = field(default_factory=dict)
    history: list[Json] = field(default_factory=list)
    is_complete: bool = False


@dataclass
class Backend:
    """All that was sent to the server.

    Attributes:
        files: By what they are of: `run/ID/path`, `artifact/ID/path`, `manifest/ID`.
        unanswered: Requests that nothing here answers.
        jobs: What the agent of a sweep is still to be told to do.
        refuses_charts: Whether presets are refused, as for someone who may not write.
        seconds: That every answer takes.
    """

    address: str = ""
    runs: dict[str, StoredRun] = field(default_factory=dict)
    charts: dict[str, Json] = field(default_factory=dict)
    alerts: list[Json] = field(default_factory=list)
    artifacts: dict[str, Json] = field(default_factory=dict)
    views: dict[str, Json] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: list[Json] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    refuses_charts: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._number = 0

    def next_id(self, kind: str) -> str:
        self._number += 1
        return global_id(kind, self._number)

    def upload_url(self, key: str) -> str:
        return f"{self.address}/storage/{quote(key)}"

    def only_run(self) -> StoredRun:
        [run] = self.runs.values()
        return run

    def run_file(self, run: StoredRun, key: str) -> bytes:
        """The media file that the run's summary names under `key`."""
        return self.files[f"run/{run.name}/{run.summary[key]['path']}"]

    def has_file(self, run: StoredRun, key: str) -> bool:
        """Whether the summary names one, and it has come."""
        return key in run.summary and f"run/{run.name}/{run.summary[key]['path']}" in self.files


def global_id(kind: str, number: object) -> str:
    return base64.b64encode(f"{kind}:{number}".encode()).decode()


def name_of(identifier: str) -> str:
    """What `global_id` was made of."""
    return base64.b64decode(identifier).decode().partition(":")[2]


# What each GraphQL operation is answered. The name of a function is the operation's.


def viewer(_backend: Backend, _asked: Json) -> Json:
    teams = {"edges": [{"node": {"name": ENTITY}}]}
    user = {"id": global_id("User", 1), "name": "nobody", "entity": ENTITY, "username": ENTITY, "email": "n@localhost"}
    return {"viewer": {**user, "flags": "{}", "admin": False, "teams": teams, "apiKeys": {"edges": []}}}


def server_features(_backend: Backend, _asked: Json) -> Json:
    return {"serverInfo": {"features": []}}


def run_resume_status(backend: Backend, asked: Json) -> Json:
    run = backend.runs.get(asked.get("name", ""))
    if run is None:
        return {"model": None}
    lines = len(run.history)
    bucket = {
        "id": global_id("Run", run.name),
        "name": run.name,
        "summaryMetrics": json.dumps(run.summary),
        "displayName": run.display_name,
        "logLineCount": 0,
        "historyLineCount": lines,
        "eventsLineCount": 0,
        "historyTail": json.dumps([json.dumps(line) for line in run.history[-1:]]),
        "eventsTail": "[]",
        "config": json.dumps(run.config),
        "tags": [],
        "wandbConfig": json.dumps({"t": 1}),
        "group": "",
        "jobType": "",
        "notes": "",
    }
    project = {
        "id": global_id("Project", 1),
        "name": run.project,
        "entity": {"id": global_id("Entity", 1), "name": run.entity},
    }
    return {"model": {**project, "bucket": bucket}}


def upsert_bucket(backend: Backend, asked: Json) -> Json:
    name = asked.get("name") or name_of(asked["id"])
    is_new = name not in backend.runs
    run = backend.runs.setdefault(
        name, StoredRun(name, asked.get("entity") or ENTITY, asked.get("project") or "uncategorized", f"run {name}")
    )
    run.config |= json.loads(asked.get("config") or "{}")
    if asked.get("summaryMetrics"):  # as `Api().run(...).summary.update` sends it: all of it
        run.summary = json.loads(asked["summaryMetrics"])
    run.display_name = asked.get("displayName") or run.display_name
    project = {
        "id": global_id("Project", 1),
        "name": run.project,
        "entity": {"id": global_id("Entity", 1), "name": run.entity},
    }
    bucket = {"id": global_id("Run", name), "name": name, "displayName": run.display_name, "description": ""}
    rest = {
        "config": json.dumps(run.config),
        "sweepName": None,
        "historyLineCount": len(run.history),
        "project": project,
    }
    return {"upsertBucket": {"inserted": is_new, "bucket": {**bucket, **rest}}}


def create_run_files(backend: Backend, asked: Json) -> Json:
    files = [{"name": name, "uploadUrl": backend.upload_url(f"run/{asked['run']}/{name}")} for name in asked["files"]]
    return {"createRunFiles": {"runID": global_id("Run", asked["run"]), "uploadHeaders": [], "files": files}}


def create_custom_chart(backend: Backend, asked: Json) -> Json:
    chart = f"{asked['entity']}/{asked['chartName']}"
    if backend.refuses_charts:
        raise PermissionError(f"entity {asked['entity']} does not exist")  # not to be taken for: it exists already
    if chart in backend.charts:
        raise ValueError(f"chart {chart} already exists")  # what the real server does is not known
    backend.charts[chart] = {**asked, "spec": json.loads(asked["spec"])}
    return {"createCustomChart": {"chart": {"id": chart}}}


def upsert_view(backend: Backend, asked: Json) -> Json:
    view = asked.get("id") or backend.next_id("View")
    backend.views[view] = {**asked, "spec": json.loads(asked["spec"])}
    project = {"id": global_id("Project", 1), "name": asked.get("projectName"), "entityName": asked.get("entityName")}
    told = {key: asked.get(key) for key in ("type", "displayName", "description", "spec")}
    stored = {
        "id": view,
        "name": asked.get("name") or "n",
        **told,
        "project": project,
        "updatedAt": "2026-01-01T00:00:00",
    }
    return {"upsertView": {"inserted": True, "view": stored}}


def upsert_model(_backend: Backend, asked: Json) -> Json:
    name = asked.get("name") or "p"
    project = {
        "id": global_id("Project", 1),
        "name": name,
        "entityName": asked.get("entity") or ENTITY,
        "description": "",
    }
    project |= {"access": "PRIVATE", "views": "{}"}
    return {"upsertModel": {"model": project, "project": project, "inserted": True}}


def projects(backend: Backend, asked: Json) -> Json:
    names = sorted({run.project for run in backend.runs.values()} | {"p"})
    edges = [{"node": {**_project(name, asked["entity"])}} for name in names]
    pages = {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False}
    return {"models": {"pageInfo": pages, "edges": edges}}


def _project(name: str, entity: str) -> Json:
    times = {"createdAt": "2026-01-01T00:00:00Z", "isBenchmark": False, "user": None}
    return {"__typename": "Project", "id": global_id("Project", name), "name": name, "entityName": entity, **times}


def project_internal_id(_backend: Backend, _asked: Json) -> Json:
    return {"project": {"id": global_id("Project", 1), "internalId": global_id("ProjectInternalId", 1)}}


def get_run(backend: Backend, asked: Json) -> Json:
    run = backend.runs.get(asked["name"])
    if run is None:
        return {"project": {"run": None}}
    times = {"createdAt": "2026-01-01T00:00:00Z", "heartbeatAt": "2026-01-01T00:00:00Z"}
    told: Json = {
        "id": global_id("Run", run.name),
        "name": run.name,
        "displayName": run.display_name,
        "state": "finished" if run.is_complete else "running",
        "config": json.dumps(run.config),
        "summaryMetrics": json.dumps(run.summary),
        "projectId": 1,
        **times,
    }
    nothing = dict.fromkeys(("group", "jobType", "sweepName", "systemMetrics", "description", "commit", "readOnly"))
    told["user"] = {"id": global_id("User", 1), "name": "nobody", "username": ENTITY}
    counts = {"tags": [], "historyLineCount": len(run.history), "historyKeys": {}, "eventsLineCount": 0}
    project = {"internalId": 1, "name": run.project, "entity": {"name": run.entity}}
    return {"project": {**project, "run": {**nothing, **counts, **told, "project": project}}}


def artifact_type(_backend: Backend, _asked: Json) -> Json:
    return {"project": {"artifact": None}}


def create_artifact(backend: Backend, asked: Json) -> Json:
    kept = ("artifactCollectionName", "artifactTypeName", "digest", "clientID", "runName", "entityName", "projectName")
    artifact: Json = {"id": backend.next_id("Artifact"), "state": "PENDING", **{key: asked.get(key) for key in kept}}
    backend.artifacts[artifact["id"]] = artifact
    sequence = {"latestArtifact": None}
    return {"createArtifact": {"artifact": {"id": artifact["id"], "state": "PENDING", "artifactSequence": sequence}}}


def create_artifact_manifest(backend: Backend, asked: Json) -> Json:
    manifest = backend.next_id("ArtifactManifest")
    return {"createArtifactManifest": _manifest(backend, asked, manifest)}


def update_artifact_manifest(backend: Backend, asked: Json) -> Json:
    return {"updateArtifactManifest": _manifest(backend, asked, asked["artifactManifestID"])}


def _manifest(backend: Backend, asked: Json, manifest: str) -> Json:
    owner = asked["artifactID"]
    if owner in backend.artifacts:
        backend.artifacts[owner]["manifest"] = manifest
    file = {
        "id": global_id("File", manifest),
        "uploadUrl": backend.upload_url(f"manifest/{manifest}"),
        "uploadHeaders": [],
    }
    return {"artifactManifest": {"id": manifest, "file": file}}


def create_artifact_files(backend: Backend, asked: Json) -> Json:
    edges = []
    for file in asked["artifactFiles"]:
        key = f"artifact/{file['artifactID']}/{file['name']}"
        upload: Json = {
            "storagePath": key,
            "uploadUrl": backend.upload_url(key),
            "uploadHeaders": [],
            "uploadMultipartUrls": None,
        }
        edges.append({"node": {**upload, "artifact": {"id": file["artifactID"]}}})
    return {"createArtifactFiles": {"files": {"edges": edges}}}


def commit_artifact(backend: Backend, asked: Json) -> Json:
    artifact = backend.artifacts[asked["artifactID"]]
    artifact["state"] = "COMMITTED"
    return {"commitArtifact": {"artifact": {"id": artifact["id"], "digest": artifact["digest"]}}}


def client_id_mapping(backend: Backend, asked: Json) -> Json:
    known = (one["id"] for one in backend.artifacts.values() if one["clientID"] == asked["clientID"])
    return {"clientIDMapping": {"serverID": next(known, global_id("Artifact", 0))}}


def artifact_membership(backend: Backend, asked: Json) -> Json:
    """The latest version of a collection, as `Api().artifact()` asks for it."""
    name = asked["name"].partition(":")[0]
    found = [one for one in backend.artifacts.values() if one["artifactCollectionName"] == name]
    if not found:
        return {"project": {"artifactCollectionMembership": None}}
    number = {"id": global_id("Project", 1), "internalId": global_id("ProjectInternalId", 1)}
    project = {**number, "name": asked["project"], "entity": {"name": asked["entity"]}}
    collection = {"__typename": "ArtifactSequence", "name": name, "project": project}
    alias = {"__typename": "ArtifactAlias", "id": global_id("ArtifactAlias", 1), "alias": "latest"}
    version = {"versionIndex": 0, "createdAt": "2026-01-01T00:00:00Z"}
    membership = {
        "__typename": "ArtifactCollectionMembership",
        "id": global_id("ArtifactCollectionMembership", 1),
        **version,
        "aliases": [alias],
        "artifactCollection": collection,
        "artifact": {**_artifact(found[-1], collection), **version},
    }
    return {"project": {"artifactCollectionMembership": membership}}


def _artifact(artifact: Json, collection: Json) -> Json:
    nothing = dict.fromkeys(("description", "metadata", "historyStep", "updatedAt"))
    counts = {"size": 1, "fileCount": 1, "ttlDurationSeconds": -2, "ttlIsInherited": False, "commitHash": "0"}
    told = {key: artifact[key] for key in ("id", "state", "digest")}
    kind = {"name": artifact["artifactTypeName"]}
    return {
        "__typename": "Artifact",
        **nothing,
        **counts,
        **told,
        "tags": [],
        "artifactType": kind,
        "artifactSequence": collection,
    }


def artifact_manifest(backend: Backend, asked: Json) -> Json:
    artifact = backend.artifacts[asked.get("id") or asked["artifactID"]]
    url = backend.upload_url(f"manifest/{artifact['manifest']}")
    return {"artifact": {"currentManifest": {"id": artifact["manifest"], "file": {"directUrl": url}}}}


def artifact_file_urls(backend: Backend, asked: Json) -> Json:
    artifact = [one for one in backend.artifacts.values() if one["artifactCollectionName"] == asked["collection"]][-1]
    prefix = f"artifact/{artifact['id']}/"
    names = [key.removeprefix(prefix) for key in backend.files if key.startswith(prefix)]
    nodes = [{"__typename": "File", "name": name, "directUrl": backend.upload_url(prefix + name)} for name in names]
    page = {"__typename": "PageInfo", "hasNextPage": False, "endCursor": None}
    files = {"pageInfo": page, "edges": [{"node": node} for node in nodes]}
    membership = {"__typename": "ArtifactSequence", "artifactMembership": {"files": files}}
    return {"project": {"artifactCollection": membership}}


def upsert_sweep(_backend: Backend, asked: Json) -> Json:
    project = {"id": global_id("Project", 1), "name": asked["projectName"], "entity": {"id": "1", "name": ENTITY}}
    return {"upsertSweep": {"sweep": {"name": "sweep", "project": project}, "configValidationWarnings": []}}


def create_agent(backend: Backend, _asked: Json) -> Json:
    return {"createAgent": {"agent": {"id": backend.next_id("Agent")}}}


def agent_heartbeat(backend: Backend, asked: Json) -> Json:
    """One run after the other, each when the agent is idle; then its end."""
    idle = not json.loads(asked["runState"])
    commands = [backend.jobs.pop(0) if backend.jobs else {"type": "exit"}] if idle else []
    return {"agentHeartbeat": {"agent": {"id": asked["id"]}, "commands": json.dumps(commands)}}


def notify_scriptable_run_alert(backend: Backend, asked: Json) -> Json:
    backend.alerts.append(asked)
    return {"notifyScriptableRunAlert": {"success": True}}


OPERATIONS: dict[str, Callable[[Backend, Json], Json]] = {
    "FetchArtifactManifest": artifact_manifest,
    "ArtifactMembershipByName": artifact_membership,
    "ArtifactType": artifact_type,
    "ClientIDMapping": client_id_mapping,
    "CommitArtifact": commit_artifact,
    "CreateAgent": create_agent,
    "NotifyScriptableRunAlert": notify_scriptable_run_alert,
    "CreateArtifact": create_artifact,
    "CreateArtifactFiles": create_artifact_files,
    "CreateArtifactManifest": create_artifact_manifest,
    "CreateCustomChart": create_custom_chart,
    "CreateRunFiles": create_run_files,
    "GetArtifactMembershipFileUrls": artifact_file_urls,
    "GetDefaultEntity": viewer,
    "GetProjects": projects,
    "Heartbeat": agent_heartbeat,
    "MarkRunFilesUploaded": lambda _backend, _asked: {"markRunFilesUploaded": {"success": True}},
    "OrgFeatureFlags": lambda _backend, _asked: {"organization": {"featureFlags": []}},
    "ProjectInternalId": project_internal_id,
    "Run": get_run,
    "RunResumeStatus": run_resume_status,
    "RunStoppedStatus": lambda _backend, _asked: {"project": {"run": {"stopped": False}}},
    "ServerFeaturesQuery": server_features,
    "ServerInfo": lambda _backend, _asked: {"serverInfo": {"cliVersionInfo": {"max_cli_version": "99.0.0"}}},
    "UpdateArtifactManifest": update_artifact_manifest,
    "UpsertBucket": upsert_bucket,
    "UpsertModel": upsert_model,
    "UpsertSweep": upsert_sweep,
    "Viewer": viewer,
    "upsertView": upsert_view,
}


class Handler(BaseHTTPRequestHandler):
    """Takes the requests of one server."""

    protocol_version = "HTTP/1.1"
    backend: ClassVar[Backend]

    def log_message(self, *_args: object) -> None:
        pass

    def answer(self) -> None:
        backend, body = self.backend, self._body()
        time.sleep(backend.seconds)
        path = unquote(urlparse(self.path).path)
        with backend.lock:
            if path == "/graphql":
                self._send(self._graphql(json.loads(body)))
            elif path.startswith("/storage/"):
                self._storage(path.removeprefix("/storage/"), body)
            elif stream := re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", path):
                self._send(self._stream(stream[1], json.loads(body)))
            else:
                backend.unanswered.append(f"{self.command} {path}")
                self._send({"error": "not found"}, status=404)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_PATCH = answer

    def _graphql(self, request: Json) -> Json:
        match = re.search(r"(?:query|mutation)\s+(\w+)", request.get("query", ""))
        operation = request.get("operationName") or (match[1] if match else "")
        self.backend.asked.append(operation)
        asked = request.get("variables") or {}
        if operation not in OPERATIONS:
            self.backend.unanswered.append(f"GraphQL {operation} {sorted(asked)}")
            return {"data": {}, "errors": [{"message": f"no answer to {operation}"}]}
        try:
            return {"data": OPERATIONS[operation](self.backend, asked["input"] if set(asked) == {"input"} else asked)}
        except (PermissionError, ValueError) as fault:
            return {"data": None, "errors": [{"message": str(fault)}]}

    def _storage(self, key: str, body: bytes) -> None:
        if self.command == "PUT":
            self.backend.files[key] = body
            self._send({})
        elif key in self.backend.files:
            self._send(self.backend.files[key])
        else:
            self._send({"error": "no such file"}, status=404)

    def _stream(self, name: str, message: Json) -> Json:
        run = self.backend.runs.setdefault(name, StoredRun(name, ENTITY, "p", name))
        for file, chunk in (message.get("files") or {}).items():
            lines = [json.loads(line) for line in chunk.get("content", []) if line.startswith("{")]
            if file == "wandb-history.jsonl":
                run.history += lines
            elif file == "wandb-summary.json":
                run.summary |= {key: value for line in lines for key, value in line.items()}
        run.is_complete = run.is_complete or bool(message.get("complete"))
        return {"limits": {}}

    def _body(self) -> bytes:
        if "chunked" in (self.headers.get("Transfer-Encoding") or ""):
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().strip() or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _send(self, answer: Json | bytes, *, status: int = 200) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header(
            "Content-Type", "application/octet-stream" if isinstance(answer, bytes) else "application/json"
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """One thread a connection, none of them waited for."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away in the midst of a connection are nothing to write home about."""


@contextmanager
def loopback() -> Iterator[Backend]:
    """A server on a free port, until the block ends."""
    backend = Backend()
    handler = type("BoundHandler", (Handler,), {"backend": backend})
    with Server(("127.0.0.1", 0), handler) as server:
        backend.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield backend
        finally:
            server.shutdown()
            thread.join()
