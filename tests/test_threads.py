"""Linear algebra of small matrices takes one thread."""

import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_info, threadpool_limits

from shoal.threads import one_thread


def threads() -> set[int]:
    """Of every library of linear algebra that is loaded."""
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_work_takes_one_thread_and_leaves_the_others_alone() -> None:
    """NumPy's library and SciPy's; afterwards as before, also after an error."""
    with threadpool_limits(2, user_api="blas"):
        assert one_thread(threads)() == {1}
        assert threads() == {2}
