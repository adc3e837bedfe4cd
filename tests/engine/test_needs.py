"""What a fingerprint is blind without: metrics and facts, also those that only place a channel."""

from __future__ import annotations

from unveil.engine.needs import needs
from unveil.features.catalogue import FEATURES
from unveil.knowledge.content import shipped_root
from unveil.knowledge.loading import load
from unveil.records.entity import EntityKind
from unveil.records.fingerprint import FactClause, FeatureClause, Fingerprint, ShareClause
from unveil.records.subsystem import Subsystem


def fingerprint(*clauses: FeatureClause | FactClause | ShareClause) -> Fingerprint:
    return Fingerprint(
        name="f", id="1", title="", status="test", level="low", description="", group_by=EntityKind.NIC,
        clauses=clauses, condition="all of them", hold_s=1.0, keep_firing_s=1.0, subsystem=Subsystem.NETWORK,
    )  # fmt: skip


def feature(name: str, *, optional: bool = False) -> FeatureClause:
    return FeatureClause(name="c", feature=name, entity=None, operator="gte", threshold=0.0, optional=optional)


def test_a_feature_needs_its_metrics_and_the_facts_that_place_them() -> None:
    names = needs(fingerprint(feature("network.irq_remote_share.rate")))
    assert {"cpu.irq", "network.nic_irqs"} <= names
    assert names >= FEATURES["network.irq_remote_share.rate"].formula.facts


def test_what_is_optional_or_a_share_needs_nothing() -> None:
    fact = FactClause(name="k", fact="memory.thp_enabled", entity=None, operator="eq", operand="never")
    share = ShareClause(name="s", subsystem=Subsystem.CPU, operator="gte", threshold=0.3)
    assert needs(fingerprint(feature("memory.dirty.mean", optional=True), fact, share)) == {"memory.thp_enabled"}


def test_every_shipped_fingerprint_needs_something() -> None:
    knowledge = load(shipped_root()).knowledge
    assert knowledge is not None
    assert all(needs(each) for each in knowledge.fingerprints)
