#!/bin/sh
printf '{"hottest": %s, "lines": 1}\n' "$(cat)"
