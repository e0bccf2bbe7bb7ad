"""The process between the parent and a trial: when either ends, everything that the trial has started ends too.

``launch`` starts it as a script, ``python keeper.py PARENT REPORT GROUP``. It forks: the child goes on as the trial,
without having imported anything for it, and the original process becomes the keeper. The keeper

* gets a signal from the kernel when the parent ends, however it ends (``PR_SET_PDEATHSIG``), and
* adopts the processes that the trial's processes orphan (``PR_SET_CHILD_SUBREAPER``), so nothing can leave its tree
  (https://man7.org/linux/man-pages/man2/prctl.2.html).

It re-executes itself so that it shares no pages with the trial, then sleeps until signalled. It ends as the trial did.
On systems other than Linux there is no keeper, and ``launch`` does what it can.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

AWAITED = {signal.SIGTERM, getattr(signal, "SIGCHLD", signal.SIGTERM)}  # Windows, which has none, imports this too
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
TRACKING, FEW, TRACKER = 1.0, 100, b"resource_tracker import main"


def main() -> None:
    """Fork into trial and keeper, or run as the keeper after re-execution."""
    if sys.argv[1] == "keep":
        trial, parent, scratch, group = sys.argv[2:]
        keep(int(trial), int(parent), scratch, group)
    parent, report, group = sys.argv[1:]
    if sys.platform == "linux":
        part(int(parent), os.path.dirname(report), group)  # noqa: PTH120 - pathlib is not imported for the trial
    go_on(report)


def go_on(report: str) -> None:
    """Run the trial on standard input, as ``python -m loaders._trial.child REPORT`` would."""
    import runpy

    sys.argv[1:] = [report]
    if not sys.flags.safe_path:  # with PYTHONSAFEPATH, no directory stands before those of PYTHONPATH
        sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` has it, instead of this file's directory
    runpy.run_module("loaders._trial.child", run_name="__main__", alter_sys=True)


def part(parent: int, scratch: str, group: str) -> None:
    """Fork: return in the child, which is the trial, and turn this process into the keeper."""
    prctl = ctypes.CDLL(None).prctl
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    keeper = os.getpid()
    if os.getppid() != parent:  # it ended before the signal was requested
        os.kill(keeper, signal.SIGTERM)
    trial = os.fork()
    if trial:
        arguments = ["keep", str(trial), str(parent), scratch, group]
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, *arguments])  # noqa: S606 - no shell
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    write("/proc/self/oom_score_adj", "1000")  # if memory runs out, the kernel should kill this and nothing else
    if group:
        write(f"{group}/cgroup.procs", "0")


def keep(trial: int, parent: int, scratch: str, group: str) -> None:
    """Wait until the trial ends or must be ended, end what is left of it, and exit as it did."""
    codes: dict[int, int] = {}
    while reap(codes) and trial not in codes and signal.sigwait(AWAITED) != signal.SIGTERM:
        pass
    end(trial, group, codes)
    if os.getppid() != parent:  # nobody else is left to clean up
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)
        if group:
            with contextlib.suppress(OSError):
                os.rmdir(group)  # noqa: PTH106 - pathlib is not imported for this
    code = codes[trial]
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def reap(codes: dict[int, int]) -> bool:
    """Note the exit code of each child that has ended, negative for a signal; return whether others remain."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        return False
    return True


def end(trial: int, group: str, codes: dict[int, int]) -> None:
    """End all descendants of this process, and return when they are gone.

    Processes that keep forking outrun any listing of them. So the trial's process group is killed in one call, and the
    rest is stopped until a listing finds nothing new, then killed.
    """
    if not reap(codes):
        return
    let_trackers_end(codes)
    if group:
        write(f"{group}/cgroup.kill", "1")
    with contextlib.suppress(ProcessLookupError):
        os.killpg(trial, signal.SIGKILL)
    stopped: set[int] = set()
    while reap(codes):
        found = below(os.getpid())
        new = found - stopped
        for pid in new or found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if new else signal.SIGKILL)
        stopped = (stopped & found) | new if new else set()  # a number that is free may be given again
        if not new:
            time.sleep(0.001)


def let_trackers_end(codes: dict[int, int]) -> None:
    """Kill all but Python's resource trackers, if there are any, and give these a second.

    A tracker removes the shared memory of a trial once all processes that used it have ended: nothing else does
    (https://docs.python.org/3/library/multiprocessing.shared_memory.html). Not where there are so many processes that
    they may be forking faster than they can be listed.
    """
    late = time.monotonic() + TRACKING
    while len(found := below(os.getpid())) <= FEW and time.monotonic() < late:
        trackers = set(filter(tracks, found))
        if not trackers:
            return
        for pid in found - trackers:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
        reap(codes)


def tracks(pid: int) -> bool:
    """Whether a process is a resource tracker."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - pathlib is not imported for this
            return any(TRACKER in each and each.startswith(b"from ") for each in file.read().split(b"\0"))
    except (FileNotFoundError, ProcessLookupError):
        return False


def below(root: int) -> set[int]:
    """Return all descendants of a process."""
    children = of_each() if children_of(root) is None else None
    found = [root]
    for pid in found:
        found += (children_of(pid) or []) if children is None else children.get(pid, [])
    return set(found[1:])


def children_of(pid: int) -> list[int] | None:
    """Return the children of a process; ``None`` if it has ended, or if the kernel does not list them.

    This takes microseconds, in which hardly any process ends that has just been started
    (https://man7.org/linux/man-pages/man5/proc_pid_task.5.html).
    """
    found: list[int] | None = None
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib is not imported for this
    except (FileNotFoundError, ProcessLookupError):
        return None
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                found = [*(found or ()), *map(int, file.read().split())]
        except (FileNotFoundError, ProcessLookupError):  # this thread has ended: the others go on
            continue
    return found


def of_each() -> dict[int, list[int]]:
    """Return the children of every process."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib is not imported for this
        if entry.isdecimal():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])  # PID (NAME) STATE PARENT ...
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry))
    return children


def write(path: str, text: str) -> None:
    """Write to one of the kernel's files, if it lets us."""
    with contextlib.suppress(OSError), open(path, "w") as file:  # noqa: PTH123
        file.write(text)


if __name__ == "__main__":
    main()
