#!/bin/sh
# Installs real components that tests run against, where that is possible. Usage: scripts/components.sh NAME…
# (postgres, docker, network: what networks are cut with, pgbouncer, faketime, browser, gcs, azure, minio and dex: minutes to build,
# kubernetes: etcd, API server and controller manager, a quarter of an hour to build; kubelet: with the scheduler; helm: with
# kubeconform)
# Exit 1 if one cannot be had; tests that need it then skip and say so.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }
has_postgres() { has pg_ctl || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1; }

# An engine, a registry, and a static program to make images of.
has_docker() {
    for program in dockerd docker-registry busybox; do
        PATH=$PATH:/usr/sbin:/bin command -v "$program" >/dev/null 2>&1 || return 1
    done
}

install_packages() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "$* missing: only root on Debian or Ubuntu can install that here" >&2
        return 1
    fi
    echo "$* missing: installing" >&2
    # No cluster is made and no service started: tests start servers of their own.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "$@" >/dev/null
}

# Servers that stand for a cloud's service are kept outside of the tree, by version.
CACHE=${ORK_TESTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ork-tests}
GCS=$CACHE/fake-gcs-server-v1.56.1
AZURE=$CACHE/azurite-3.35.0
MINIO=$CACHE/minio-v0.0.0-20260212201848-7aac2a2c5b7c
KUBERNETES=$CACHE/kubernetes-v1.34.4
HELM=$CACHE/helm-v3.19.5
KUBECONFORM=$CACHE/kubeconform-v0.7.0
DEX=$CACHE/dex-v0.0.0-20240807174518-43956db7fd75

install_gcs() {
    has go || { echo "fake-gcs-server missing: only Go can build it" >&2; return 1; }
    echo "fake-gcs-server missing: building" >&2
    GOFLAGS= GOBIN=$GCS go install "github.com/fsouza/fake-gcs-server@${GCS##*server-}"
}

install_minio() {
    has go || { echo "MinIO missing: only Go can build it" >&2; return 1; }
    echo "MinIO missing: building, which takes minutes" >&2
    GOFLAGS= GOBIN=$MINIO go install "github.com/minio/minio@${MINIO##*minio-}"
}

# Its go.mod replaces a module by a folder, which only a build of its own repository can do: so it is built in a module of
# ours, which names that other module. Its storage needs cgo.
install_dex() {
    { has go && has gcc; } || { echo "Dex missing: only Go with a C compiler can build it" >&2; return 1; }
    echo "Dex missing: building, which takes minutes" >&2
    mkdir -p "$DEX.part"
    (
        cd "$DEX.part"
        printf 'module dex\n\ngo 1.22\n\nrequire (\n\tgithub.com/dexidp/dex %s\n\tgithub.com/dexidp/dex/api/v2 v2.2.0\n)\n' "${DEX##*dex-}" >go.mod
        printf '//go:build tools\n\npackage dex\n\nimport _ "github.com/dexidp/dex/cmd/dex"\n' >tools.go
        GOFLAGS=-mod=mod CGO_ENABLED=1 go build -o dex github.com/dexidp/dex/cmd/dex
    ) && rm -rf "$DEX" && mv "$DEX.part" "$DEX"
}

install_azure() {
    has npm || { echo "Azurite missing: only npm can install it" >&2; return 1; }
    echo "Azurite missing: installing" >&2
    npm install --silent --no-fund --no-audit --prefix "$AZURE.part" "azurite@${AZURE##*azurite-}" && mv "$AZURE.part" "$AZURE"
}

# Kubernetes and its parts name each other by folders of one repository. A module of our own names their published versions.
kubernetes_module() {
    version=${KUBERNETES##*kubernetes-}
    staging=v0.${version#v1.}
    theirs=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    mkdir -p "$1"
    {
        printf 'module ork.test/components\n\ngo 1.24.0\n\ngodebug default=go1.24\n\n'
        sed -n "s#^[[:space:]]*\(k8s.io/[^ ]*\) => ./staging/.*#replace \1 => \1 $staging#p" "$theirs"
    } >"$1/go.mod"
}

# go_build FOLDER NAME PACKAGE: one program, put in its place only when it is whole.
go_build() {
    version=${KUBERNETES##*kubernetes-}
    minor=${version#v1.}
    stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
    echo "$2 missing: building" >&2
    CGO_ENABLED=0 nice -n 10 go build -mod=mod -ldflags "-s -w $stamp" -o "$1/$2.part" "$3" && mv "$1/$2.part" "$1/$2"
}

# install_kubernetes NAME…: two that ask at once wait for each other, so that tests can wait for a build in the background.
install_kubernetes() {
    has go || { echo "Kubernetes missing: only Go can build it" >&2; return 1; }
    mkdir -p "$KUBERNETES"
    (
        flock 9
        export GOFLAGS=
        if [ ! -e "$KUBERNETES/module/go.sum" ]; then
            kubernetes_module "$KUBERNETES/module"
            cd "$KUBERNETES/module"
            go mod edit -require "k8s.io/kubernetes@${KUBERNETES##*kubernetes-}"
        fi
        cd "$KUBERNETES/module"
        for name in "$@"; do
            [ -x "$KUBERNETES/$name" ] && continue
            case $name in
                etcd) go_build "$KUBERNETES" etcd go.etcd.io/etcd/server/v3 || exit 1 ;;
                *) go_build "$KUBERNETES" "$name" "k8s.io/kubernetes/cmd/$name" || exit 1 ;;
            esac
        done
    ) 9>"$CACHE/kubernetes.lock"
}

# Built with the Kubernetes libraries of the component above, which are then compiled once.
install_helm() {
    has go || { echo "Helm missing: only Go can build it" >&2; return 1; }
    mkdir -p "$HELM" "$KUBECONFORM"
    (
        flock 9
        export GOFLAGS=
        if [ ! -x "$HELM/helm" ]; then
            kubernetes_module "$HELM/module"
            cd "$HELM/module"
            go mod edit -require "helm.sh/helm/v3@${HELM##*helm-}"
            go_build "$HELM" helm helm.sh/helm/v3/cmd/helm || exit 1
        fi
        [ -x "$KUBECONFORM/kubeconform" ] || GOBIN=$KUBECONFORM nice -n 10 go install "github.com/yannh/kubeconform/cmd/kubeconform@${KUBECONFORM##*kubeconform-}"
    ) 9>"$CACHE/helm.lock"
}

all_there() {
    folder=$1
    shift
    for name in "$@"; do [ -x "$folder/$name" ] || return 1; done
}

for component in "$@"; do
    case $component in
        postgres) has_postgres || install_packages postgresql ;;
        docker) has_docker || install_packages docker.io docker-registry busybox-static ;;
        network) { has ip && has nsenter; } || install_packages iproute2 util-linux ;;
        faketime) has faketime || install_packages faketime ;;
        browser) has chromium || install_packages chromium ;;
        gcs) [ -x "$GCS/fake-gcs-server" ] || install_gcs ;;
        minio) [ -x "$MINIO/minio" ] || install_minio ;;
        dex) [ -x "$DEX/dex" ] || install_dex ;;
        azure) [ -d "$AZURE" ] || install_azure ;;
        kubernetes) all_there "$KUBERNETES" etcd kube-apiserver kube-controller-manager || install_kubernetes etcd kube-apiserver kube-controller-manager ;;
        kubelet) all_there "$KUBERNETES" kube-scheduler kubelet || install_kubernetes kube-scheduler kubelet ;;
        helm) { all_there "$HELM" helm && all_there "$KUBECONFORM" kubeconform; } || install_helm ;;
        pgbouncer) has pgbouncer || install_packages pgbouncer ;;
        *)
            echo "unknown component: $component" >&2
            exit 2
            ;;
    esac
done
