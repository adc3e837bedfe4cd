"""Observation: everything that is read of a live host, and never waited for.

Ticks come from a thread of their own, everything else from the watch loop's; they share the sampler, one at a time.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from unveil.host.catalogue import new_probes
from unveil.host.facts.reader import FactReader
from unveil.host.gpu import GpuReader
from unveil.host.probe import Probes
from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.host.source import SourceHealth
    from unveil.records.sample import Layout, SampleBlock

FACTS_EVERY_NS = 9_500_000_000
"""A setting that somebody changes is evidence ten seconds later: who asks each fifth second may ask a little early."""


class Observation:
    """Samples and facts of one host.

    Args:
        host_root: holds ``proc`` and ``sys``.
        gpu: read GPUs, in a child process.
    """

    def __init__(self, host_root: Path, *, gpu: bool) -> None:
        self.root = HostRoot(host_root)
        self._sampler = Sampler(self.root)
        self._sampling = threading.Lock()
        self._probes = Probes(new_probes(), live=self.root.live)
        self._probes.poll(0)  # opened now rather than at a tick
        self.gpu = GpuReader(self.root) if gpu else None
        self._fact_reader = FactReader(self.root)
        self.facts = FactTable()
        self._facts_ns = 0
        self._gpu_layout: Layout | None = None
        self._gpus_changed = False
        self.refresh_facts(0)

    def tick(self, now_ns: int) -> None:
        """Read what is due at a tick."""
        with self._sampling:
            self._sampler.tick(now_ns)

    def collect(self, now_ns: int) -> tuple[SampleBlock, ...]:
        """Return what came since the last time, parsed; called once a second."""
        with self._sampling:
            blocks = self._sampler.collect(now_ns)
        blocks = (*blocks, *self._probes.poll(now_ns))
        if self.gpu is not None and (block := self.gpu.poll(now_ns)) is not None:
            blocks = (*blocks, block)
            if block.layout is not self._gpu_layout:  # a plan for a GPU that has just come needs what is known of it
                self._gpu_layout = block.layout
                self._gpus_changed = True
        return blocks

    def facts_changed(self) -> None:
        """Have the facts read again with the next second: this host's settings have just been written."""
        self._facts_ns = -FACTS_EVERY_NS
        self._fact_reader.forget()

    def facts_due(self, now_ns: int) -> bool:
        """Return whether the facts are old enough to be read again, or GPUs came or went."""
        return self._gpus_changed or now_ns - self._facts_ns >= FACTS_EVERY_NS

    def refresh_facts(self, now_ns: int) -> FactTable:
        """Read the facts again; the table stays the same object while nothing changed, so that plans built on it do."""
        gpu_facts = self.gpu.facts() if self.gpu is not None else ()
        with self._sampling:
            followed = self._sampler.cgroups()
        table = self._fact_reader.read(gpu_facts, follow=followed)
        if table.facts != self.facts.facts or table.settings != self.facts.settings:
            self.facts = table
        self._facts_ns = now_ns
        self._gpus_changed = False
        return self.facts

    @property
    def reads_gpus(self) -> bool:
        """Return whether some GPU is read: what its child says is to be looked at each second."""
        return self.gpu is not None and bool(self.gpu.ages())

    def gpu_settings(self) -> dict[str, str]:
        """Return the text of each GPU setting as of its newest sample, at most a second or two old."""
        return self.gpu.settings() if self.gpu is not None else {}

    def health(self) -> tuple[SourceHealth, ...]:
        """Return how each source is doing."""
        gpu = () if self.gpu is None else (self.gpu.health().as_source(),)
        with self._sampling:
            return (*self._sampler.health(), *self._probes.health(), *gpu)

    def close(self) -> None:
        """Close files, and ask the GPU child to end."""
        with self._sampling:
            self._sampler.close()
        self._probes.close()
        if self.gpu is not None:
            self.gpu.close()
