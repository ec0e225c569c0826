"""The templates for Flink, read."""

import yaml
from here import ROOT

FLINK = ROOT / "templates" / "flink"


MANIFESTS = sorted((FLINK / "kubernetes").glob("*.yaml"))


COMPOSE = FLINK / "docker-compose.yaml"


# Options that the job server describes and Beam's Python parser does not know.
OF_THE_JOB_SERVER = {"--parallelism", "--execution_mode_for_batch", "--load_balance_bundles"}


def documents(path):
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def objects(kind):
    """Returns the objects of a kind in the Kubernetes manifests."""
    return [d for path in MANIFESTS for d in documents(path) if d["kind"] == kind]


def compose():
    return yaml.safe_load(COMPOSE.read_text("utf-8"))


def containers():
    """Yields (object, container) of everything in the manifests that has pods."""
    for document in [d for path in MANIFESTS for d in documents(path)]:
        spec = document.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        template = spec.get("template") or spec.get("taskManager", {}).get("podTemplate") or {}
        for container in template.get("spec", {}).get("containers", []):
            yield document, container


def settings():
    """Yields the settings of Flink, of each set-up."""
    [properties] = {
        s["environment"]["FLINK_PROPERTIES"]
        for s in compose()["services"].values()
        if "environment" in s
    }
    yield dict(line.split(": ", 1) for line in properties.splitlines())
    [cluster] = objects("FlinkDeployment")
    spec = cluster["spec"]
    # The operator makes settings of the resources.
    sizes = {
        f"{name.lower()}.memory.process.size": spec[name]["resource"]["memory"]
        for name in ("taskManager", "jobManager")
    }
    yield spec["flinkConfiguration"] | sizes
