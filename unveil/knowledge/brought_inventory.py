"""What the inventory in a pack would grant, and what stands in its place where nobody asked for that.

Whoever made a pack says what may be done; who may order it, and how far automation goes, is for the site to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.errors import BadInputError
from unveil.knowledge.content import INVENTORY
from unveil.knowledge.loading import judge
from unveil.knowledge.parse import parse_profiles
from unveil.records.problem import Gravity

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILES = f"{INVENTORY}/profiles.yml"
OBSERVING = b"""\
# yaml-language-server: $schema=../schemas/profiles.schema.json
# How far automation may go, and who may order. The pack that was installed here brought a file that grants more than
# this one does; it was not taken.
apiVersion: unveil/v1
kind: Profiles
default: observe
"""


def grants_of(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return what a pack's own profiles and roles would grant, one a line.

    Raises:
        BadInputError: what they grant cannot be told.
    """
    content = files.get(PROFILES)
    if content is None:
        return ()
    judged = judge(PROFILES, PROFILES, content, "Profiles")
    if not judged.sound:
        first = next((each for each in judged.problems if each.gravity is Gravity.ERROR), "it is empty")
        raise BadInputError(f"the pack does not load: {first}")
    try:
        return parse_profiles(judged.document.data).grants
    except ValueError as error:  # 30 February
        raise BadInputError(f"the pack does not load: {PROFILES}: {error}") from error
