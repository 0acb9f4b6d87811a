"""Spools and staged rows lie in directories of this user alone: anything else is refused with a remedy that works."""

import os
import stat
import subprocess

import pytest

import queueduct
from queueduct.spark.private import make_private
from queueduct.spark.write.staging import staging_root
from tests.spark.rows import TICK, numbered
from tests.spark.spooling import stream_of
from tests.support.children import needs_root


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_directory_is_made_private_and_its_parents_are_not_open_to_others(tmp_path):
    before = os.umask(0)
    try:
        made = make_private(tmp_path / "lake" / "rows" / "spool", "spoolDir")
    finally:
        os.umask(before)
    assert mode_of(made) == 0o700
    assert mode_of(made.parent) == mode_of(made.parent.parent) == 0o755
    assert make_private(made, "spoolDir") == made, "and again"


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o770, 0o777, 0o1777])
@pytest.mark.parametrize("use", ["spool", "staging"])
def test_a_directory_that_is_open_to_others_is_refused_until_it_is_closed(tmp_path, mode, use):
    folder = tmp_path / "rows"
    folder.mkdir()
    folder.chmod(mode)
    with queueduct.BoundedQueue.create("jobs", 64, item=TICK) as jobs:
        jobs.put_many(numbered(0, 10))

        def begin():
            if use == "staging":
                return staging_root(str(folder), "jobs", "abc")
            stream = stream_of(jobs, folder)
            stream.initialOffset()
            return stream.stop()

        with pytest.raises(
            PermissionError, match=rf"mode 0700: its mode is {mode:04o}; .*chmod 700 it, or .* {use}Dir"
        ):
            begin()
        assert jobs.qsize() == 10
        folder.chmod(0o700)
        begin()


def test_a_link_is_refused_and_what_it_leads_to_is_taken(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir(mode=0o700)
    link.symlink_to(real)
    with pytest.raises(PermissionError, match=f"no link to one: it leads to {real}; name that one .* spoolDir"):
        make_private(link, "spoolDir")
    make_private(real, "spoolDir")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PermissionError, match="no link"):
        make_private(tmp_path / "dangling", "spoolDir")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="must be a directory"):
        make_private(tmp_path / "file", "spoolDir")


@pytest.mark.parametrize("remedy", [0o755, 0o1777])
def test_a_parent_where_anybody_can_put_another_in_its_place_is_refused(tmp_path, remedy):
    parent = tmp_path / "open"
    (parent / "mine").mkdir(parents=True)
    parent.chmod(0o777)
    with pytest.raises(PermissionError, match=rf"{parent} has mode 0777; chmod o-w or \+t it.*stagingDir"):
        staging_root(str(parent / "mine" / "rows"), "jobs", "abc")
    parent.chmod(remedy)
    staging_root(str(parent / "mine" / "rows"), "jobs", "abc")


def test_a_directory_in_one_whose_group_is_inherited_is_private_too(tmp_path):
    tmp_path.chmod(0o2755)
    made = make_private(tmp_path / "spool", "spoolDir")
    assert mode_of(made) == 0o2700
    made.chmod(0o2750)
    with pytest.raises(PermissionError, match=r"its mode is 2750; .*chmod 700 it"):
        make_private(made, "spoolDir")
    subprocess.run(["chmod", "700", made], check=True)  # which leaves that bit of a directory as it is
    make_private(made, "spoolDir")


@pytest.mark.parametrize("way", ["open/way", "home"])
def test_a_link_on_the_way_must_not_lie_where_anybody_can_turn_it(tmp_path, way):
    parent = tmp_path / "open"
    parent.mkdir()
    (tmp_path / "real").mkdir(mode=0o700)
    (parent / "way").symlink_to(tmp_path / "real")
    (tmp_path / "home").symlink_to("real/../open/way")
    parent.chmod(0o777)
    with pytest.raises(PermissionError, match=rf"{parent} has mode 0777; chmod o-w or \+t it"):
        make_private(tmp_path / way / "spool", "spoolDir")
    parent.chmod(0o755)
    assert make_private(tmp_path / way / "spool", "spoolDir").samefile(tmp_path / "real" / "spool")


@needs_root
def test_a_directory_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(PermissionError, match="must belong to the user 0: it belongs to 12345; name another"):
        make_private(folder, "stagingDir")
