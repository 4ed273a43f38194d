"""7xx: code locations."""

from __future__ import annotations

from ork.definition.codes.explanation import CodeExplanation, by_code

CODES = by_code(
    CodeExplanation(
        "ORK701",
        "a location needs an image or a folder",
        "A location is either an `image`, which is looked up in its registry, or a folder (`path`). `pull` is only for images.",
        "- {name: etl}",
        "- {name: etl, image: registry.example.org/etl:latest}",
    ),
    CodeExplanation(
        "ORK702",
        "duplicate location name",
        "Workflows refer to their location by name.",
        "- {name: etl, path: a}\n- {name: etl, path: b}",
        "- {name: etl-a, path: a}\n- {name: etl-b, path: b}",
    ),
    CodeExplanation(
        "ORK703",
        "invalid image name",
        "An image is written as `[host[:port]/]name[:tag]`, in lower case. A digest (`@sha256:…`) instead of the tag pins the\n"
        "content.",
        "image: https://registry.example.org/ETL",
        "image: registry.example.org/etl:latest",
    ),
    CodeExplanation(
        "ORK704",
        "unreadable folder",
        "The folder does not exist, or contains too many files for a project. In an image it is the working directory (WORKDIR).",
        right="WORKDIR /app",
    ),
    CodeExplanation(
        "ORK705",
        "duplicate workflow name in a location",
        "Workflow names must be unique within a location.",
        right="ork-parse DIR",
    ),
    CodeExplanation(
        "ORK706",
        "image not found in its registry",
        "The registry cannot be reached, does not have the image, or rejected the credentials, which are those of `docker login`.\n"
        "Known workflows continue to run, and the next refresh tries again.",
        right="docker login registry.example.org\ndocker manifest inspect registry.example.org/etl:latest",
    ),
    CodeExplanation(
        "ORK707",
        "`ork-parse` failed",
        "It is not in the image, timed out, or printed too much or invalid output. Its output is shown with the error. The last\n"
        "good version stays in use.",
        right="docker run --rm --network none IMAGE ork-parse",
    ),
    CodeExplanation(
        "ORK708",
        "errors in the workflows of a location",
        "A location is updated only if all its workflows are valid. The last good version stays in use.",
        right="docker run --rm --network none IMAGE ork-parse\nork-parse DIR",
    ),
    CodeExplanation(
        "ORK709",
        "the workflow belongs to a location",
        "The image or folder is the only source of this workflow: it cannot be deployed, replaced or deleted in another way.\n"
        "Change it there, or remove the location from locations.yaml.",
        right="ork locations",
    ),
    CodeExplanation(
        "ORK710",
        "the workflow belongs to another location",
        "Another location already has a workflow of that name, and keeps it.",
        right="ork locations",
    ),
)
