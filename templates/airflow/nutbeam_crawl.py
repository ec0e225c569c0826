"""A crawl as an Airflow DAG: seeds once, then phase by phase until nothing is due.

Each task is one `nutbeam next`: generate, fetch, parse, updatedb or dedup,
as the table determines. The first task that finds nothing due ends the run: the
tasks after it are skipped. An interrupted run leaves an open batch, which the next
run finishes first.

Airflow 3. Put this file into the folder of DAGs, and edit the constants in capitals
and the params. docs/guides/airflow.md says how to install nutbeam for the workers.
"""

import hashlib
import os
import re
from datetime import timedelta

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, Param, TaskGroup
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

# The command on the workers. Use a separate environment: Airflow and Beam pin
# the same libraries to different versions.
COMMAND = os.environ.get("CRAWL_COMMAND", "nutbeam")
ROUNDS = int(os.environ.get("CRAWL_ROUNDS", "3"))  # at most, in one run of the DAG
PHASES = 5  # of a round: generate, fetch, parse, updatedb, dedup
DONE, NOTHING_TO_DO, BAD_USAGE = 0, 1, 2  # nutbeam's exit codes


class NutbeamOperator(BaseOperator):
    """Runs one nutbeam command; its exit code determines the state of the task.

    If nothing is due, the task is skipped. Bad usage fails without a retry. Any other
    failure is tried again. That is safe: the operation id of the seeds is made from the
    DAG's run, and `next` derives the id of a phase from the table. So a second try joins
    the first one if that still runs, and continues after it if that has committed.

    Args:
        words: The command and its flags; templates are filled in.
        parameters: Names of the run's params whose values follow: a list, or one word.
    """

    template_fields = ("words",)

    def __init__(self, *, words: list[str], parameters: list[str], **kwargs) -> None:
        super().__init__(**kwargs)
        self.words = words
        self.parameters = parameters
        self._hook: SubprocessHook | None = None

    def execute(self, context) -> str:
        # A list, never a shell: users who trigger a run choose these words.
        command = [COMMAND, *self.words]
        for name in self.parameters:
            value = context["params"][name]
            command += value if isinstance(value, list) else [value]
        self._hook = SubprocessHook()
        result = self._hook.run_command(command)
        if result.exit_code == NOTHING_TO_DO:
            raise AirflowSkipException("nothing is due")
        if result.exit_code == BAD_USAGE:
            raise AirflowFailException(result.output)
        if result.exit_code != DONE:
            raise AirflowException(f"exit code {result.exit_code}: {result.output}")
        return result.output

    def on_kill(self) -> None:
        if self._hook is not None:
            self._hook.send_sigterm()


def operation_id(dag_id: str, run_id: str, task_id: str) -> str:
    """Returns an id that is the same in each try of a task, and in no other run.

    >>> operation_id("nutbeam_crawl", "manual__2026-11-21T09:00:00+00:00", "inject")
    'nutbeam_crawl.manual__2026-11-21T09-00-00-00-00.inject-4f41feea'
    """
    name = f"{dag_id}.{run_id}.{task_id}"
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


with DAG(
    dag_id="nutbeam_crawl",
    description="Crawl with nutbeam until nothing is due.",
    schedule=None,  # "@daily" fetches once a day the pages that have become due
    catchup=False,
    max_active_runs=1,  # two crawls of one table would wait for each other
    default_args={"retries": 3, "retry_delay": timedelta(minutes=1)},
    user_defined_macros={"operation_id": operation_id},
    tags=["nutbeam"],
    params={
        "table": Param("/srv/nutbeam/table", type="string", description="The web table."),
        "seeds": Param(
            ["https://www.your-site.org/"],
            type="array",
            items={"type": "string"},
            minItems=1,
            description="URLs, or files of URLs. Known ones change nothing.",
        ),
        "options": Param(
            ["--agent_name=mybot", "--agent_email=you@your-site.org"],
            type="array",
            items={"type": "string"},
            description="Options of nutbeam next.",
        ),
        "runner": Param(
            [],
            type="array",
            items={"type": "string"},
            description="Options of Beam, such as --runner=PortableRunner; none runs in-process.",
        ),
    },
):
    last = NutbeamOperator(
        task_id="inject",
        words=["inject", "--operation={{ operation_id(dag.dag_id, run_id, task.task_id) }}"],
        parameters=["runner", "table", "seeds"],
    )
    for number in range(1, ROUNDS + 1):
        with TaskGroup(f"round_{number}"):
            for step in range(1, PHASES + 1):
                phase = NutbeamOperator(
                    task_id=f"next_{step}",
                    words=["next", "--wait_until_done"],
                    parameters=["runner", "options", "table"],
                )
                last >> phase
                last = phase
    last >> NutbeamOperator(
        task_id="report",
        words=["readdb", "--format=json"],
        parameters=["table"],
        trigger_rule="none_failed",  # though skipped tasks precede it
    )
