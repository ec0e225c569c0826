"""What the tests ask of Airflow; runs with the Python of an environment that has it.

usage: airflow_probe.py QUESTION FILE [ARGUMENT...], a question being a function below.

Prints one JSON value on the last line; Airflow's log may precede it.
"""

import importlib.util
import json
import sys


def dags(path):
    """Returns what the DagBag finds in a file."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(path)
    return {"errors": bag.import_errors, "dags": {n: _dag(d) for n, d in bag.dags.items()}}


def _dag(dag):
    return {
        "params": dag.params.dump(),
        "tasks": {
            task.task_id: {
                "upstream": sorted(task.upstream_task_ids),
                "retries": task.retries,
                "words": getattr(task, "words", None),
                "parameters": getattr(task, "parameters", None),
                "body": getattr(task, "body", None),
            }
            for task in dag.topological_sort()
        },
    }


def execute(path, params, *words):
    """Returns how an operator of the file ends that runs these words."""
    module = _load(path)
    params = json.loads(params)
    task = module.NutbeamOperator(task_id="probe", words=list(words), parameters=list(params))
    try:
        return ["", task.execute({"params": params})]
    except Exception as error:  # noqa: BLE001 (which one is the answer)
        return [type(error).__name__, str(error)]


def operation(path, *names):
    """Returns the operation id of a task: its DAG's name, the run's and its own."""
    return _load(path).operation_id(*names)


def updated(path, metrics):
    """Returns what the file makes of the counters of a job."""
    return _load(path).updated(json.loads(metrics))


def rendered(path, task_id):
    """Returns a task's body for the run ``manual__1+00:00`` with the params' defaults."""
    from airflow.dag_processing.dagbag import DagBag

    [dag] = DagBag(path).dags.values()
    task = dag.get_task(task_id)
    context = {"params": dag.params.dump(), "dag": dag, "task": task, "run_id": "manual__1+00:00"}
    task.render_template_fields(context)
    return {"body": task.body, "location": task.location, "project": task.project_id}


def _load(path):
    spec = importlib.util.spec_from_file_location("dag_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    answer = globals()[sys.argv[1]](*sys.argv[2:])
    print("\n" + json.dumps(answer, default=str))
