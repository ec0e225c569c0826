"""A crawl as an Airflow DAG on Dataflow: launches the Flex Templates, round by round.

Injects seeds once, then launches up to ROUNDS jobs of the template `round`, each with
generate, fetch, parse, updatedb and dedup. After each round it reads the counters of
the job from Dataflow. If the job updated nothing, nothing was due, and the run ends.

Airflow 3 with its Google provider. Only the templates' image needs nutbeam itself.
Not run, because the tests have no Dataflow. See docs/guides/airflow.md.
"""

import hashlib
import os
from datetime import timedelta

from airflow.providers.google.cloud.hooks.dataflow import DataflowHook
from airflow.providers.google.cloud.operators.dataflow import DataflowStartFlexTemplateOperator
from airflow.sdk import DAG, Param, task

ROUNDS = int(os.environ.get("CRAWL_ROUNDS", "3"))  # at most, in one run of the DAG
# The namespace of updatedb's counters; a round that changed anything has some.
PROGRESS = "nutbeam_crawldb"


def name_of(dag_id: str, run_id: str, task_id: str) -> str:
    """Returns the name of a job, and id of its operation: the same in each try of a task.

    Dataflow runs only one job of the same name at a time, so a retry does not run beside
    the first try. After the first try the operation is done, and is not applied twice.
    """
    digest = hashlib.sha256(f"{dag_id}.{run_id}.{task_id}".encode()).hexdigest()[:16]
    return f"nutbeam-{task_id.replace('_', '-')}-{digest}"


def updated(metrics: list[dict]) -> bool:
    """Returns whether the counters of a job say that it has changed the table."""
    counters = [
        float(metric.get("scalar", 0))
        for metric in metrics
        if metric["name"].get("context", {}).get("namespace") == PROGRESS
        and "tentative" not in metric["name"]["context"]
    ]
    return any(counters)


@task.short_circuit
def go_on(job: dict, params: dict) -> bool:
    """Skips the remaining rounds if the last one found nothing due."""
    hook = DataflowHook()
    found = hook.fetch_job_metrics_by_id(
        job_id=job["id"], project_id=params["project"], location=params["region"]
    )
    return updated(found.get("metrics", []))


def launch(task_id: str, template: str, parameters: str) -> DataflowStartFlexTemplateOperator:
    """Returns a task that launches a template and waits for its job.

    Args:
        task_id: Name of the task.
        template: Name of the template.
        parameters: A Jinja expression: what it gets besides command, table and operation.
    """
    name = "name_of(dag.dag_id, run_id, task.task_id)"
    return DataflowStartFlexTemplateOperator(
        task_id=task_id,
        project_id="{{ params.project }}",
        location="{{ params.region }}",
        append_job_name=False,
        deferrable=True,  # waits without a worker slot
        body={
            "launchParameter": {
                "jobName": f"{{{{ {name} }}}}",
                "containerSpecGcsPath": f"{{{{ params.templates }}}}/{template}.json",
                "parameters": f"{{{{ dict({parameters}, command='{template}', table=params.table, operation={name}) }}}}",
                "environment": "{{ params.environment }}",
            }
        },
    )


with DAG(
    dag_id="nutbeam_crawl_dataflow",
    description="Crawl with nutbeam on Dataflow until nothing is due.",
    schedule=None,
    catchup=False,
    max_active_runs=1,  # two crawls of one table would wait for each other
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},
    user_defined_macros={"name_of": name_of},
    render_template_as_native_obj=True,  # parameters and environment are objects
    tags=["nutbeam"],
    params={
        "project": Param("your-project", type="string"),
        "region": Param("us-central1", type="string"),
        "templates": Param(
            "gs://your-bucket/templates", type="string", description="Folder of the templates."
        ),
        "table": Param("gs://your-bucket/table", type="string", description="The web table."),
        "seeds": Param(
            "https://www.your-site.org/",
            type="string",
            description="URLs, or files of URLs, separated by commas. Known ones change nothing.",
        ),
        "parameters": Param(
            {"agent_name": "mybot", "agent_email": "you@your-site.org"},
            type="object",
            description="Parameters of the template round; values are texts.",
        ),
        "environment": Param(
            {"maxWorkers": 10},
            type="object",
            description="Dataflow's FlexTemplateRuntimeEnvironment: workers, network, account.",
        ),
    },
):
    last = launch("inject", "inject", "seeds=params.seeds")
    for number in range(1, ROUNDS + 1):
        crawled = launch(f"round_{number}", "round", "params.parameters")
        last >> crawled
        if number < ROUNDS:
            last = go_on.override(task_id=f"go_on_{number}")(crawled.output)
