#!/bin/sh
# Runs `tiphys rehearse` once for each report of a job. Exit code: that of the rehearsal.
#
# $REHEARSE_PATH      folder of the repository                        $REHEARSE_ARGUMENTS  further arguments, by blanks
# $REHEARSE_BASE      revision to compare with; empty brings everything up
# $REHEARSE_REPORTS   folder for report.md and report.html
set -eu

reports=$REHEARSE_REPORTS
mkdir -p "$reports"
set -- rehearse "$REHEARSE_PATH"
[ -z "$REHEARSE_BASE" ] || set -- "$@" --diff "$REHEARSE_BASE"
# shellcheck disable=SC2086 # several arguments in one input
set -- "$@" $REHEARSE_ARGUMENTS

# The same repository, options and seed give the same story: each run tells it in another form.
code=0
tiphys "$@" --output markdown >"$reports/report.md" || code=$?
[ "$code" -le 1 ] || exit "$code"
again=0
tiphys "$@" --output html >"$reports/report.html" || again=$?
[ "$again" -le 1 ] || exit "$again"
exit "$code"
