"""Which records of a segment file are of the session that began it."""

from __future__ import annotations

from dataclasses import dataclass

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import FIRST_BOUND
from torchgraph_explorer.record.format.messages import session_value
from torchgraph_explorer.record.format.places import mark_of
from torchgraph_explorer.record.scan import ScannedRecord
from torchgraph_explorer.schema import Session


@dataclass(slots=True)
class Owner:
    """The session that began a segment file, as far as the file was read.

    Attributes:
        session: The session; None until it is known.
        segment: What the file says of its place.
        has_others: Records of another session were found in the file, and told.
    """

    session: Session | None = None
    segment: pb.Segment | None = None
    has_others: bool = False
    _mark: int = 0
    _is_within_other: bool = False

    def begin(self, segment: pb.Segment) -> Session | None:
        """Take a `Segment` record; the session, None if it is another than that of the records before.

        Raises:
            DamageError: It contradicts the format.
        """
        session = session_value(segment.session)
        if self.session is None:
            self.session, self.segment, self._mark = session, segment, mark_of(session.id)
        self._is_within_other = (session.model, session.id) != (self.session.model, self.session.id)
        return None if self._is_within_other else session

    def owns(self, head: pb.Head) -> bool:
        """Whether a record is of the session. Those of earlier releases do not say so; where they lie has to do."""
        return head.session == self._mark if head.HasField("session") else not self._is_within_other

    def as_written(self, found: ScannedRecord) -> ScannedRecord:
        """A record of the file, without `head_check` where the version of the format is too old for it."""
        is_bound = self.segment is not None and self.segment.version >= FIRST_BOUND
        return found if is_bound else found._replace(head_check=None)
