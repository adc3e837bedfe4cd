"""A small knowledge base of two fingerprints and one remediation, written afresh for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.load_child import LoadChild
from unveil.knowledge.loading import load
from unveil.records.problem import Gravity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

THROTTLING = """\
# yaml-language-server: $schema=../../schemas/fingerprint.schema.json
apiVersion: unveil/v1
kind: Fingerprint
name: quota_throttling
id: 7c0a8d0e-6b1f-4c58-9a54-2f0f5a1f3b11
title: A container is throttled while CPUs are idle
status: test
level: medium
description: |
  The quota of a cgroup stops its threads in most periods although the host has idle CPUs.
author: the authors
owner: platform
date: "2026-11-29"
references: [https://docs.kernel.org/scheduler/sched-bwc.html]
tags: [subsystem.cpu, cause.cfs_quota, impact.throughput]
group_by: cgroup
signature:
  clauses:
    throttled: {feature: cpu.cgroup_throttled_share.rate, gte: 0.2}
    host_idle: {feature: cpu.idle.rate, gte: 0.3}
    limited: {fact: cpu.cgroup_quota, lt: 1000}
  condition: throttled and host_idle and limited
  for: 6s
  keep_firing_for: 15s
falsepositives: [The tenant bought exactly this quota.]
fields: [cpu.cgroup_throttled_share.rate]
remediations: [raise_quota]
"""

THROTTLING_TEST = """\
# yaml-language-server: $schema=../../schemas/fingerprint_test.schema.json
apiVersion: unveil/v1
kind: FingerprintTest
fingerprint: quota_throttling
interval: 1s
cases:
  - name: throttled in four of ten periods
    expect: match
    at: 6s
    entity: cgroup:/pod1
    features: {cpu.cgroup_throttled_share.rate: 0.4x10, cpu.idle.rate: 0.5x10}
    facts: {cpu.cgroup_quota: {value: 0.5, setting: "cgroup:/pod1/cpu.cfs_quota_us"}}
    clauses: {throttled: match}
    plan:
      remediation: raise_quota
      variables: {cgroup: /pod1}
      settings: {"cgroup:/pod1/cpu.cfs_quota_us": "-1"}
  - name: it has to hold for six seconds
    expect: no_match
    at: 5s
    features: {cpu.cgroup_throttled_share.rate: 0.4x10, cpu.idle.rate: 0.5x10}
    facts: {cpu.cgroup_quota: 0.5}
  - name: a host without that counter has no answer
    expect: unknown
    at: 6s
    features: {cpu.cgroup_throttled_share.rate: _x10, cpu.idle.rate: 0.5x10}
    facts: {cpu.cgroup_quota: 0.5}
"""

POWER = """\
apiVersion: unveil/v1
kind: Fingerprint
name: power_limit_low
id: 2b9f4f5e-2a0c-4b6e-8f38-0d6d1c7a9e42
title: GPU power limit below the default of its board
status: experimental
level: low
description: A busy GPU is held down by a power limit that somebody lowered.
owner: platform
date: "2026-11-29"
group_by: gpu
signature:
  clauses:
    busy: {feature: gpu.util.mean, gte: 0.6}
    slower: {feature: gpu.sm_clock.mean, deviates: down, by_sigma: 2}
    gpu_led: {share: gpu, gte: 0.5, optional: true}
  condition: busy and (slower or gpu_led)
  for: 3s
falsepositives: [A planned power cap.]
"""

POWER_TEST = """\
apiVersion: unveil/v1
kind: FingerprintTest
fingerprint: power_limit_low
cases:
  - name: the clock is three sigmas down
    expect: match
    at: 3s
    features: {gpu.util.mean: 0.9, gpu.sm_clock.mean: 1600}
    reference: {gpu.sm_clock.mean: {expected: 1755, sigma: 40}}
  - name: the attribution names the GPU
    expect: match
    at: 3s
    features: {gpu.util.mean: 0.9, gpu.sm_clock.mean: 1755}
    reference: {gpu.sm_clock.mean: {expected: 1755, sigma: 40}}
    shares: {gpu: 0.7}
  - name: at its usual clock
    expect: no_match
    at: 3s
    features: {gpu.util.mean: 0.9, gpu.sm_clock.mean: 1750}
    reference: {gpu.sm_clock.mean: {expected: 1755, sigma: 40}}
"""

RAISE_QUOTA = """\
# yaml-language-server: $schema=../../schemas/remediation.schema.json
apiVersion: unveil/v1
kind: Remediation
name: raise_quota
id: 9a7d1b2c-3e4f-4a5b-8c6d-7e8f9a0b1c2d
title: Lift the CPU quota of a throttled cgroup
status: stable
description: |
  Writes the quota of the cgroup so that its threads are no longer stopped.
owner: platform
date: "2026-11-29"
remediates: [quota_throttling]
ansible: {apply: apply.yml, timeout: 60s}
variables:
  cgroup: {type: string, from: match.cgroup, pattern: "^/[A-Za-z0-9_./:-]*$"}
  quota_setting: {type: string, from: setting.cpu.cgroup_quota, pattern: "^cgroup:/.+$"}
  share: {type: number, from: site.quota_share, default: 1, min: 0, max: 4}
  tenant: {type: string, from: fact.cpu.cgroup_name, untrusted: true, max_length: 253}
settings:
  - {address: "{{ quota_setting }}", value: "{{ '-1' if share >= 1 else '50000' }}"}
mode: auto
risk: {impact: low, reversible: true, interrupts_workload: false, requires_reboot: false}
preconditions: [still_matching, no_silence]
limits: {cooldown: 30m, max_attempts: 2, within: 24h, max_hosts: 5}
rollback: {triggers: [apply_failed, verify_failed, canceled, timeout, operator], available_for: 24h}
verify:
  within: 60s
  settings_hold_for: 3s
  fingerprint_clear_for: 6s
  improve: [{feature: cpu.cgroup_throttled_share.rate, direction: down, effect: 0.5}]
  must_not_worsen: [{feature: cpu.psi_some.rate, direction: up, effect: 0.5}]
"""

APPLY = """\
---
- name: Lift the quota
  hosts: "{{ unveil_target | default('localhost') }}"
  gather_facts: false
  tasks:
    - name: Write the settings
      unveil_setting:
        settings: "{{ unveil_settings }}"
    - name: Say for whom
      ansible.builtin.debug:
        msg: "{{ tenant }} in {{ cgroup }}"
"""

VALUES = """\
apiVersion: unveil/v1
kind: SiteValues
values: {quota_share: 1}
"""

PROFILES = """\
apiVersion: unveil/v1
kind: Profiles
default: observe
profiles:
  - {name: pilot, hosts: ["gpu-*"], mode: approve, remediations: {raise_quota: auto}}
"""

FILTER = """\
apiVersion: unveil/v1
kind: Filter
name: night_cap
id: 3f0e7a8b-1c2d-4e5f-8a9b-0c1d2e3f4a5b
title: Planned power cap at night in hall B
owner: datacentre
reason: Utility contract, see change 4711.
fingerprints: [power_limit_low]
match: {hosts: ["hall-b-*"]}
expires: "2999-03-31"
"""

FILES = {
    "fingerprints/cpu/quota_throttling.yml": THROTTLING,
    "fingerprints/cpu/quota_throttling.test.yml": THROTTLING_TEST,
    "fingerprints/gpu/power_limit_low.yml": POWER,
    "fingerprints/gpu/power_limit_low.test.yml": POWER_TEST,
    "playbooks/raise_quota/remediation.yml": RAISE_QUOTA,
    "playbooks/raise_quota/apply.yml": APPLY,
    "playbooks/modules/unveil_setting.py": "# stands in for the module\n",
    "inventory/values.yml": VALUES,
    "inventory/profiles.yml": PROFILES,
    "inventory/filters/night_cap.yml": FILTER,
}


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """Return the root of a sound knowledge base."""
    root = tmp_path / "kb"
    for relative, text in FILES.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def told(kb: Path) -> Callable[[str, str, str], list[str]]:
    """Return a function that edits one file and returns every error and warning, places in that file without its name.

    Whether the knowledge base can still be used has to agree with what is told.
    """

    def tell(file: str, old: str, new: str) -> list[str]:
        text = (kb / file).read_text()
        assert old in text, f"{old!r} is not in {file}"
        (kb / file).write_text(text.replace(old, new, 1))
        loaded = load(kb)
        problems = [problem for problem in loaded.problems if problem.gravity is not Gravity.INFO]
        assert (loaded.knowledge is None) == any(problem.gravity is Gravity.ERROR for problem in problems)
        return [str(problem).replace(f"{kb}/", "").removeprefix(f"{file}:") for problem in problems]

    return tell


@pytest.fixture(scope="session")
def child() -> Iterator[LoadChild]:
    """Start one loader for all tests that need one: each would take half a second."""
    child = LoadChild()
    yield child
    child.close()
