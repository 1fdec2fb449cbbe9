#!/bin/sh
# What the container does:
#   serve [OPTIONS]             serve all indexes there are, or none yet
#   sample [OPTIONS]            the same; first build a sample if there is no index, unless it follows a service
#   build SOURCE --name NAME    build an index there, with any option of klsa-index build
#   klsa-... [ARGUMENTS]        run that command as it stands
#   ray [ARGUMENTS]             a machine of a cluster, in an image with EXTRAS=cluster (docs/guides/cluster.md)
#   join HOST:PORT COMMAND ...  join the cluster of that head, without processors for its tasks, and
#                               do any of the above there, at the address `auto`
# All of them read KLSA_HOME, the home of the indexes, and serve what else docs/reference/service-settings.md
# names (KLSA_HOST, KLSA_PORT, ...); the image sets these three.
set -eu

has_index() {
    for file in "$KLSA_HOME"/*/CURRENT; do
        [ -e "$file" ] && return 0
    done
    return 1
}

build_sample() {
    echo "No index in $KLSA_HOME: building one called 'sample' from the Python documentation." >&2
    # Set before the build begins: a signal in between would leave it running without its shell.
    trap '[ -z "${!-}" ] || { kill -TERM "$!"; wait "$!" || :; }; exit 143' TERM INT
    # In the background, because a shell that waits for a command does not hear signals.
    klsa-index build python-docs --name sample &
    wait "$!"
    trap - TERM INT
}

command=${1:-serve}
[ $# -eq 0 ] || shift

# exec: the command becomes process 1, so that the signals of `docker stop` reach it.
case $command in
    serve)
        exec klsa-serve "$@"
        ;;
    sample)
        has_index || [ -n "${KLSA_FOLLOW-}" ] || build_sample
        exec klsa-serve "$@"
        ;;
    build)
        exec klsa-index build "$@"
        ;;
    join)
        if [ $# -lt 2 ]; then
            echo "join needs the cluster's head and a command: join head:6379 serve --cluster auto" >&2
            exit 2
        fi
        # A client of Ray is a process of one of its machines; this one keeps to its command.
        ray start --address="$1" --num-cpus=0 --object-store-memory=134217728 --disable-usage-stats
        shift
        exec "$0" "$@"
        ;;
    klsa-* | ray)
        exec "$command" "$@"
        ;;
    *)
        echo "There is no command '$command': use serve, sample, build, join, ray or one of the klsa-* commands." >&2
        exit 2
        ;;
esac
