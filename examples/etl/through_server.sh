#!/bin/sh
# The sample on two "machines", which are one here: `home` has the state store and `ork serve`, `away` runs the tasks and has no folder for their
# documents. With two real ones the store is Postgres, and the server has TLS (docs/team.md).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
mkdir "$place/home" "$place/away"
cp -r "$here/workflow.yaml" "$here/tasks" "$place/away"

cd "$place/home"
token=$(ORK_STORE=sqlite:$place/home/ork.db ork token create --role scheduler --name away)
ORK_STORE=sqlite:$place/home/ork.db ork serve --port 0 --no-scheduler > ready &
server=$!
trap 'kill $server; wait $server 2> /dev/null; rm -rf "$place"' EXIT
tries=0
until grep -q url= ready; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] && kill -0 $server || { echo "the server did not start" >&2; exit 1; }
    sleep 0.1
done

cd "$place/away"
export ORK_STORE="sqlite:$place/home/ork.db" ORK_TOKEN="$token"
export ORK_OBJECTS="$(sed -n 's/.*url=\([^ ]*\).*/\1/p' ../home/ready)"
ork doctor | grep objects
ork run workflow.yaml
ork output @last transform
ls ../home/.ork/objects/runs > /dev/null && echo "the documents are on the server"
