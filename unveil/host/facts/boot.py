"""What the kernel was told at boot that changes how fast a host is: ``/proc/cmdline``.

Only parameters of a list are told. The line may hold anything, passwords of a boot loader or of a network disk
included, and facts are kept in recordings and shown to whoever may ask.

Source: Documentation/admin-guide/kernel-parameters.txt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.host.facts.sheet import FactSheet

_PARAMETERS = """
    amd_iommu amd_pstate cgroup_disable cgroup_no_v1 clocksource cpuidle.governor cpuidle.off cpufreq.default_governor
    default_hugepagesz hugepages hugepagesz hugetlb_cma idle intel_idle.max_cstate intel_iommu intel_pstate iommu
    iommu.passthrough iommu.strict irqaffinity isolcpus l1tf kvm.nx_huge_pages maxcpus mce mds mem mitigations
    nmi_watchdog nohz nohz_full nohlt nopti nosmt nosoftlockup nospectre_v1 nospectre_v2 nowatchdog nr_cpus numa
    numa_balancing pci pcie_aspm preempt processor.max_cstate psi pti rcu_nocbs retbleed skew_tick spec_rstack_overflow
    spec_store_bypass_disable spectre_v2 spectre_v2_user srbds swapaccount swiotlb
    systemd.unified_cgroup_hierarchy threadirqs transparent_hugepage tsc tsx tsx_async_abort zswap.enabled
"""
_TOLD = frozenset(_PARAMETERS.split())
_VALUE = re.compile(r"[\w.,:;+@/-]{0,200}", re.ASCII)
_MOST = 64


def read_boot_parameters(sheet: FactSheet) -> None:
    """Tell which of these parameters the kernel was started with, in their order: ``('mitigations=off', 'nosmt')``."""
    text = sheet.text("proc/cmdline")
    if text is None:
        sheet.miss("cpu.boot_parameters", "this kernel has no /proc/cmdline")
        return
    told = []
    for word in text.partition(" -- ")[0].split():  # what follows is for the first process
        name, _, value = word.partition("=")
        if name.replace("-", "_") in _TOLD and _VALUE.fullmatch(value):
            told.append(word)
    sheet.tell("cpu.boot_parameters", tuple(told[:_MOST]))
