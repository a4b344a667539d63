#!/bin/sh
# Runs `tiphys check` for a job and leaves reports; shared by GitHub and GitLab. Exit code: that of the check.
#
# $CHECK_PATH      folder of the repository                                $CHECK_SEVERITY  least severity that fails
# $CHECK_BASE      revision to compare with; empty shows everything        $CHECK_ARGUMENTS further arguments, by blanks
# $CHECK_REPORTS   folder for report.md, report.sarif and report.xml
# $CHECK_OUTPUT    form of the output of the job: text, github
set -eu

reports=$CHECK_REPORTS
mkdir -p "$reports"
set -- check "$CHECK_PATH" --severity "$CHECK_SEVERITY"
[ -z "$CHECK_BASE" ] || set -- "$@" --diff "$CHECK_BASE"
# shellcheck disable=SC2086 # several arguments in one input
set -- "$@" $CHECK_ARGUMENTS

# report FILE ARGUMENTS: 1 is a finding, which the last run says; anything else ends the script.
report() {
  file=$reports/$1
  shift
  code=0
  tiphys "$@" >"$file" || code=$?
  [ "$code" -le 1 ] || exit "$code"
}
report report.md "$@" --output markdown
report report.sarif "$@" --output sarif
report report.xml "$@" --output junit
exec tiphys "$@" --output "$CHECK_OUTPUT"
