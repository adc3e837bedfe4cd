"""A scripted watcher: the edge that the cockpit talks to, answering with real records."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from made_up_records import HOST_NAME, START_S, episode, planned_run, window

from unveil.errors import BadInputError, WatcherAbsentError
from unveil.records.codec import encode
from unveil.records.mark import Mark, MarkKind
from unveil.records.run import RunState, Step
from unveil.records.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.match import Episode, Match
    from unveil.records.run import Run


class ScriptedWatcher:
    """Answers like a watcher from what a test put into it; keeps every order."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.windows = [window(n) for n in range(50)]
        self.windows += [window(n, severity=4.5, matched="reduced_huge_page_coverage") for n in range(50, 60)]
        self.episodes: list[Episode] = [episode()]
        self.runs: list[Run] = []
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.silences: list[Silence] = []
        self.orders: list[tuple[str, dict[str, Any]]] = []
        self.absent = False
        self.host = HOST_NAME
        self.impact = "low"
        self.settings = 1
        self.problems: list[str] = []
        self.stale: tuple[float, str] | None = None
        self.started_s = START_S
        self.marks: list[Mark] = []
        self.nearly: list[Match] = []
        self.now: dict[str, str] = {}
        self.changed_by = ""
        self.text = "name: reduced_huge_page_coverage\nsignature:\n  clauses: {}\n"
        self.broken_link: int | None = None
        self.breaker = {"open": False, "failures": 0, "most": 3}
        self.rhythm: dict[str, Any] | None = None
        self.backtests: dict[str, Any] = {}
        self.members: dict[str, list[Episode]] = {}

    def call(self, method: str, **params: Any) -> Any:
        with self.lock:
            if self.absent:
                raise WatcherAbsentError("no watcher listens at /run/x", hint="start one")
            answer: Callable[..., Any] | None = getattr(self, f"do_{method}", None)
            if answer is None:
                raise BadInputError(f"no such method: {method}")
            return answer(**params)

    def push(self, *, severity: float = 0.3, matched: str = "", count: int = 1) -> None:
        with self.lock:
            for _ in range(count):
                last = self.windows[-1]
                self.windows.append(window(last.index + 1, severity=severity, matched=matched, watch=last.watch))

    # Questions

    def do_status(self) -> Any:
        last = self.windows[-1] if self.windows else None
        return {
            "version": "0", "pid": 1, "host": self.host, "watch": last.watch if last else 1,
            "started_s": self.started_s, "now_s": last.wall_s if last else START_S, "uptime_s": 60.0,
            "profile": "manual", "rule": "zscore", "window": None if last is None else encode(last),
            "knowledge": self._state(), "trained": True, "training": "trained 3 min ago",
            "ticks": {"taken": 600, "missed": 2, "late_p50_ms": 0.1, "late_p99_ms": 1.2},
            "cost": {"cpu_share": 0.0042, "rss_bytes": 41_000_000}, "channels": 10, "features": 20,
            "episodes_open": len(self.episodes), "runs_active": 0,
            "shape": {"cpus": 64, "nodes": 2, "gpus": 8, "nics": 4}, "gpu": None, "sources": [],
            "problems": self.problems, "breaker": self.breaker, "rhythm": self.rhythm,
            "rhythm_absent": "" if self.rhythm else "nothing repeats",
        }  # fmt: skip

    def _state(self) -> dict[str, Any]:
        since, reason = self.stale or (None, "")
        return {
            "generation": 3, "digest": "d", "at_s": START_S, "fingerprints": 1, "remediations": 1,
            "stale_since_s": since, "problems": [reason] if reason else [],
        }  # fmt: skip

    def do_windows(self, limit: int, before: list[int] | None = None, until_s: float | None = None) -> Any:
        edge = tuple(before) if before else (1 << 60, 0)
        found = [each for each in reversed(self.windows) if (each.watch, each.index) < edge]
        found = [each for each in found if until_s is None or each.wall_s <= until_s]
        return [encode(each) for each in found[:limit]]

    def do_window(self, watch: int, index: int) -> Any:
        return next(encode(each) for each in self.windows if (each.watch, each.index) == (watch, index))

    def do_episodes(self, limit: int = 100, open_only: bool = False) -> Any:
        return [encode(each) for each in self.episodes if not open_only or each.state != "cleared"][:limit]

    def do_episode(self, id: str) -> Any:  # noqa: A002
        found = next((each for each in self.episodes if each.id == id), None)
        if found is None:
            raise BadInputError(f"no episode {id!r}")
        runs = [encode(each) for each in self.runs if each.plan.episode == id]
        return {"episode": encode(found), "runs": runs, "marks": self.do_marks()}

    def do_runs(self, limit: int = 100) -> Any:
        return [encode(each) for each in self.runs][:limit]

    def do_run(self, id: str, after_event: int = 0) -> Any:  # noqa: A002
        events = [each for each in self.events.get(id, []) if each["number"] > after_event]
        return {"run": encode(self.run(id)), "events": events}

    def do_ping(self) -> str:
        return "pong"

    def do_near(self, window: int | None = None, **_: Any) -> Any:
        near = [{"match": encode(each.last), "met": 2, "of": 3} for each in self.episodes]
        near += [{"match": encode(each), "met": 1, "of": 3} for each in self.nearly]
        for each in near:
            each["match"]["window"] = window
        return {"window": window, "kept": True, "near": near}

    def do_series(self, features: list[str], until: int | None = None, limit: int = 120) -> Any:
        values = [float(number % 7) for number in range(40)]
        return [{"feature": each, "from": 0, "values": values, "expected": 3.0, "sigma": 1.0} for each in features]

    def do_settings(self, id: str) -> Any:  # noqa: A002
        run = self.run(id)
        return [
            {
                "address": address, "saved": run.saved[address], "written": written,
                "now": self.now.get(address, written), "by": self.changed_by,
            }
            for address, written in run.written.items()
        ]  # fmt: skip

    def do_verification(self, id: str) -> Any:  # noqa: A002
        measured = {
            "feature": "memory.cgroup_huge_share.last", "demand": "improve: up by at least 10 %", "before": 0.02,
            "after": 0.4, "change": 19.0, "holds": True,
        }  # fmt: skip
        return {
            "left_s": 41.0, "held_s": 3.0, "hold_s": 3.0, "clear_s": 2.0, "stay_clear_s": 6.0, "measured": [measured]
        }  # fmt: skip

    def do_knowledge_text(self, path: str) -> Any:
        return {"path": path, "text": self.text, "reading": False, "problem": ""}

    def do_explain(self, fingerprint: str, entity: str | None = None) -> Any:
        return [encode(each.last) for each in self.episodes if each.fingerprint == fingerprint]

    def do_draft(self, **params: Any) -> Any:
        name = params["name"]
        return {"subsystem": "memory", "name": name, "fingerprint": f"name: {name}\n", "test": f"fingerprint: {name}\n"}

    def do_marks(self, **_: Any) -> Any:
        return [encode(each) for each in self.marks]

    def do_hits(self) -> Any:
        return {"reduced_huge_page_coverage": {"episodes": 12, "last_s": START_S, "false_positives": 3}}

    def do_backtests(self) -> Any:
        return self.backtests

    def do_members(self, episode: str) -> Any:
        return {name: [encode(each) for each in episodes] for name, episodes in self.members.items()}

    def do_audit(self) -> Any:
        return {"watches": [], "broken_link": self.broken_link}

    def do_mark(self, **params: Any) -> Any:
        self._ordered("mark", **params)
        kind = MarkKind(params["kind"])
        made = Mark(
            episode=params["episode"], fingerprint="f", kind=kind, text=params["text"], actor="uid:0", at_s=START_S
        )  # fmt: skip
        self.marks.append(made)
        return encode(made)

    def do_end_silence(self, id: str) -> Any:  # noqa: A002
        self._ordered("end_silence", id=id)
        self.silences = [each for each in self.silences if each.id != id]
        return {}

    def do_silences(self) -> Any:
        return [encode(each) for each in self.silences]

    def do_knowledge(self) -> Any:
        return {
            "state": self._state(), "root": "/kb",
            "fingerprints": [{
                "name": "reduced_huge_page_coverage", "title": "Huge pages are gone", "status": "stable",
                "level": "medium", "group_by": "cgroup", "subsystem": "memory",
                "description": "Small pages cost [bold]TLB[/] misses.", "condition": "small_pages and thp_off",
                "remediations": ["restore_huge_pages"], "path": "/kb/fingerprints/memory/x.yml",
                "falsepositives": ["databases"], "references": ["https://docs.kernel.org/"], "revision": "r1",
            }],
            "correlations": [{
                "name": "gone_on_several", "title": "Gone on several at once", "status": "test", "level": "high",
                "group_by": "host", "description": "A decision.", "type": "value_count",
                "fingerprints": ["reduced_huge_page_coverage"], "timespan_s": 60.0, "count_of": "entity",
                "at_least": 2, "effect": "no_remediation", "path": "/kb/fingerprints/correlations/y.yml",
                "falsepositives": [], "references": [],
            }],
            "remediations": [{
                "name": "restore_huge_pages", "title": "Give them back", "status": "test", "mode": "manual",
                "impact": "low", "description": "", "risk_notes": "", "path": "/kb/playbooks/x",
            }],
        }  # fmt: skip

    # Orders

    def run(self, identity: str) -> Run:
        return next(each for each in self.runs if each.id == identity)

    def step(self, identity: str, state: RunState, cause: str = "operator", **changes: Any) -> Run:
        with self.lock:
            run = self.run(identity)
            last = Step(at_s=run.steps[-1].at_s + 1, state=state, cause=cause, actor="uid:0 pid:1")
            stepped = replace(run, steps=(*run.steps, last), **changes)
            self.runs[self.runs.index(run)] = stepped
            return stepped

    def event(self, identity: str, **event: Any) -> None:
        with self.lock:
            events = self.events.setdefault(identity, [])
            events.append({"number": len(events) + 1, "at_s": START_S + 70 + len(events), **event})

    def _ordered(self, method: str, **params: Any) -> None:
        self.orders.append((method, params))

    def do_plan(self, episode: str) -> Any:
        self._ordered("plan", episode=episode)
        found = next(each for each in self.episodes if each.id == episode)
        if not any(run.plan.episode == episode for run in self.runs):
            self.runs.insert(0, planned_run(found, impact=self.impact, settings=self.settings))
        return encode(next(run for run in self.runs if run.plan.episode == episode))

    def do_dry_run(self, id: str) -> Any:  # noqa: A002
        self._ordered("dry_run", id=id)
        return encode(self.run(id))

    def do_approve(self, id: str, hash: str) -> Any:  # noqa: A002
        self._ordered("approve", id=id, hash=hash)
        return encode(self.step(id, RunState.APPROVED))

    def do_apply(self, id: str, hash: str) -> Any:  # noqa: A002
        self._ordered("apply", id=id, hash=hash)
        address = "file:/sys/kernel/mm/transparent_hugepage/enabled"
        return encode(
            self.step(id, RunState.APPLYING, "started", saved={address: "madvise"}, written={address: "always"})
        )

    def do_cancel(self, id: str) -> Any:  # noqa: A002
        self._ordered("cancel", id=id)
        return encode(self.step(id, RunState.CANCELED))

    def do_rollback(self, id: str) -> Any:  # noqa: A002
        self._ordered("rollback", id=id)
        self.step(id, RunState.ROLLING_BACK)
        return encode(self.step(id, RunState.ROLLED_BACK, "restored"))

    def do_silence(self, **params: Any) -> Any:
        self._ordered("silence", **params)
        made = Silence(
            id="s1", fingerprint=params["fingerprint"], entity=params["entity"], reason=params["reason"],
            until_s=START_S + params["seconds"], actor="uid:0", created_s=START_S,
        )  # fmt: skip
        self.silences.append(made)
        return encode(made)

    def do_reload(self) -> Any:
        self._ordered("reload")
        return self._state()
