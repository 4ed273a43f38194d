"""7xx: code locations."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK701",
        "a location is an image or a folder",
        "Workflows are found in an image, which is looked up in its registry, or in a folder, given by its path: one of\n"
        "them, and not both. `pull` is about images alone.",
        "- {name: etl}",
        "- {name: etl, image: registry.example.org/etl:latest}",
    ),
    Explanation(
        "ORK702",
        "two locations of one name",
        "Workflows say by name which location they come from.",
        "- {name: etl, path: a}\n- {name: etl, path: b}",
        "- {name: etl-a, path: a}\n- {name: etl-b, path: b}",
    ),
    Explanation(
        "ORK703",
        "not the name of an image",
        "An image is written as `[host[:port]/]name[:tag]`, in small letters; a digest (`@sha256:…`) may stand in place of\n"
        "the tag, and then nothing ever changes.",
        "image: https://registry.example.org/ETL",
        "image: registry.example.org/etl:latest",
    ),
    Explanation(
        "ORK704",
        "a folder that cannot be looked through",
        "It is not there, or it holds so many files that it is hardly a project. In an image, the folder is its working\n"
        "directory (WORKDIR).",
        right="WORKDIR /app",
    ),
    Explanation(
        "ORK705",
        "two workflows of one name in a location",
        "A name stands for one workflow: which of the two is meant, nobody can tell.",
        right="ork-parse DIR",
    ),
    Explanation(
        "ORK706",
        "the registry gave no answer about an image",
        "It cannot be reached, does not know the image, or wants other credentials. Those of `docker login` are used.\n"
        "Workflows that are known go on, and the next refresh tries again.",
        right="docker login registry.example.org\ndocker manifest inspect registry.example.org/etl:latest",
    ),
    Explanation(
        "ORK707",
        "`ork-parse` gave no answer",
        "It is not in the image, it took too long, said too much, or said something else. What it printed is shown with\n"
        "the error. The last good version goes on.",
        right="docker run --rm --network none IMAGE ork-parse",
    ),
    Explanation(
        "ORK708",
        "mistakes in the workflows of a location",
        "Nothing of it is taken over unless all of it is right. The last good version goes on.",
        right="docker run --rm --network none IMAGE ork-parse\nork-parse DIR",
    ),
    Explanation(
        "ORK709",
        "a workflow that belongs to a location",
        "The image or folder it comes from is its only source: it cannot be deployed, replaced or deleted anywhere else.\n"
        "Change it there, or take the location out of locations.yaml.",
        right="ork locations",
    ),
    Explanation(
        "ORK710",
        "a workflow of two locations",
        "Another location has a workflow of that name already, and keeps it.",
        right="ork locations",
    ),
)
