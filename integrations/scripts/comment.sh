#!/bin/sh
# Puts a report into one comment of a pull request (GitHub) or merge request (GitLab): the first run writes it, later ones
# change it. A report of nothing found writes no first comment.
#
#   sh comment.sh REPORT.md NAME FOUND
#
# NAME tells several reports of one pull request apart; FOUND is 0 if nothing was found, else 1.
# GitHub: $GITHUB_TOKEN, $GITHUB_API_URL, $GITHUB_REPOSITORY, $GITHUB_EVENT_PATH; $COMMENT_AUTHOR is the token's login.
# GitLab: $TIPHYS_GITLAB_TOKEN (a project access token of scope api), and what GitLab sets in a job.
set -eu

[ $# = 3 ] || { echo 'usage: comment.sh REPORT.md NAME FOUND' >&2; exit 2; }
report=$1
marker="<!-- tiphys check: $(printf '%s' "$2" | tr -cd 'A-Za-z0-9._/-') -->"
found=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
  echo "no comment: $1"
  exit 0
}

# request METHOD URL [BODY-FILE]: writes the answer into $scratch/answer.
request() {
  if [ -n "${3:-}" ]; then set -- "$1" "$2" --data-binary "@$3"; else set -- "$1" "$2"; fi
  method=$1 url=$2
  shift 2
  status=$(curl --silent --show-error --request "$method" --header "@$scratch/headers" \
    --output "$scratch/answer" --write-out '%{http_code}' "$@" "$url") || skip "$method $url: no answer"
  case $status in
    2??) ;;
    # A pull request of a fork has a token that may read only; what was found is in the log all the same.
    401 | 403) skip "$method $url: $status, the token may not write comments" ;;
    *) echo "$method $url: $status $(head -c 300 "$scratch/answer")" >&2; exit 1 ;;
  esac
}

# Sets $id to the comment that is ours, or to nothing. $1 is the list's URL, $2 a filter by author.
find_comment() {
  page=1
  while :; do
    request GET "$1?per_page=100&page=$page"
    id=$(jq --raw-output --arg marker "$marker" --arg author "$author" \
      "[.[] | select($2) | select((.body // \"\") | startswith(\$marker))][0].id // empty" "$scratch/answer")
    [ -z "$id" ] || return 0
    [ "$(jq length "$scratch/answer")" = 100 ] || return 0
    page=$((page + 1))
  done
}

# Writes the body that both hosts take. GitHub's limit is 65,536 characters: a longer report ends before the finding that
# passes it.
write_body() {
  printf '%s\n' "$marker" >"$scratch/text"
  awk -v limit=60000 '
    function flush() {
      if (used + length(piece) > limit) is_cut = 1
      if (!is_cut) { printf "%s", piece; used += length(piece) }
      piece = ""
    }
    /^<details>/ { flush() }
    { piece = piece $0 "\n" }
    END {
      flush()
      if (is_cut) print "\n**The report is longer than a comment may be.** The log of the job has the rest."
    }' "$report" >>"$scratch/text"
  jq --raw-input --slurp '{body: .}' "$scratch/text" >"$scratch/body"
}

umask 077
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  [ -n "${GITHUB_TOKEN:-}" ] || skip 'there is no token'
  number=$(jq --raw-output '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
  [ -n "$number" ] || skip 'this is no pull request'
  author=${COMMENT_AUTHOR:-github-actions[bot]}
  printf 'Authorization: Bearer %s\nAccept: application/vnd.github+json\nContent-Type: application/json\n' \
    "$GITHUB_TOKEN" >"$scratch/headers"
  api=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues
  # shellcheck disable=SC2016 # a variable of jq
  by='.user.login == $author'
  list=$api/$number/comments one=$api/comments change=PATCH
elif [ -n "${GITLAB_CI:-}" ]; then
  [ -n "${TIPHYS_GITLAB_TOKEN:-}" ] || skip 'TIPHYS_GITLAB_TOKEN is not set: a project access token of scope api'
  [ -n "${CI_MERGE_REQUEST_IID:-}" ] || skip 'this is no merge request'
  printf 'PRIVATE-TOKEN: %s\nContent-Type: application/json\n' "$TIPHYS_GITLAB_TOKEN" >"$scratch/headers"
  request GET "$CI_API_V4_URL/user"
  author=$(jq .id "$scratch/answer")
  # shellcheck disable=SC2016 # a variable of jq
  by='(.author.id | tostring) == $author'
  list=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes one=$list change=PUT
else
  skip 'this is neither GitHub Actions nor GitLab CI'
fi

find_comment "$list" "$by"
write_body
if [ -n "$id" ]; then
  request "$change" "$one/$id" "$scratch/body"
  echo "changed comment $id"
elif [ "$found" = 0 ]; then
  skip 'nothing was found, and none is there to be changed'
else
  request POST "$list" "$scratch/body"
  echo "wrote comment $(jq .id "$scratch/answer")"
fi
