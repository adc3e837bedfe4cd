from __future__ import annotations

from unveil.cli.fleet import changes
from unveil.records.run import SettingChange


def change(before: str | None, after: str | None, *, address: str = "sysctl:net.core.somaxconn") -> SettingChange:
    return SettingChange(address=address, before=before, after=after, reason="" if before else "cannot be read")


def test_a_host_that_reads_as_wanted_says_in_one_line_that_nothing_is_to_change() -> None:
    as_wanted = [change("4096\n", "4096"), change("0-3\n", "0,1,2,3", address="irq:24/smp_affinity_list")]
    assert changes("h1", as_wanted) == [("h1", "2 settings", "as wanted", "nothing to change")]
    assert changes("h1", [change("[always] madvise never", "always", address="file:/sys/kernel/mm/t")])[0][3] == (
        "nothing to change"
    )


def test_a_host_that_differs_in_one_setting_shows_all_of_them() -> None:
    rows = changes("h2", [change("128\n", "4096"), change("4096\n", "4096"), change("20\n", None)])
    assert [row[2:] for row in rows] == [("128", "4096"), ("4096", "4096"), ("20", "(saved, moves along)")]


def test_what_could_not_be_read_is_not_as_wanted() -> None:
    assert changes("h3", [change(None, "4096")])[0][2:] == ("cannot be read", "4096")
    assert changes("h3", []) == []
