#!/usr/bin/env bash
# The step `rehearse` of the action: plays the change, writes the summary, and tells later steps how it ended. It succeeds
# where the rehearsal does not end green, so that the steps that report it run; the last step of the action fails then.
set -euo pipefail

command -v tiphys >/dev/null || { echo '::error::tiphys is not on the PATH: leave the input version as it is, or install it in an earlier step'; exit 2; }
if [ "$REHEARSE_BASE" = auto ]; then
  REHEARSE_BASE=
  if [ -n "${GITHUB_BASE_REF:-}" ]; then
    REHEARSE_BASE=origin/$GITHUB_BASE_REF
    # A checkout has the last commit alone unless it was asked for more.
    git rev-parse --quiet --verify "$REHEARSE_BASE^{commit}" >/dev/null ||
      git fetch --quiet --no-tags --depth=1 origin "+refs/heads/$GITHUB_BASE_REF:refs/remotes/$REHEARSE_BASE"
  fi
fi
export REHEARSE_BASE
export REHEARSE_REPORTS=$RUNNER_TEMP/tiphys-rehearse
code=0
sh "$(dirname "${BASH_SOURCE[0]}")/../../scripts/rehearse.sh" || code=$?
[ "$code" -le 1 ] || { echo "::error::tiphys rehearse could not run (exit code $code)"; exit "$code"; }
head -c 1000000 "$REHEARSE_REPORTS/report.md" >>"$GITHUB_STEP_SUMMARY"
{
  echo "red=$code"
  echo "report=$REHEARSE_REPORTS/report.md"
  echo "page=$REHEARSE_REPORTS/report.html"
} >>"$GITHUB_OUTPUT"
