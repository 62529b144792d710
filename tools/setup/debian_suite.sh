# A newer Debian suite through a private apt configuration: nothing is installed, root is not needed, and
# the system's apt state is not touched. Sourced after common.sh, never run.
# shellcheck shell=bash

# The first archive the machine's own apt uses that is neither security nor updates. apt prints it,
# so that both formats of its sources (.list and .sources) are read by the one who defines them.
MachineArchive() {
    apt-get update --print-uris 2>/dev/null |
        sed -nE "s|^'(.*)/dists/([^/']+)/+InRelease'.*|\1 \2|p" |
        grep -vE -e '-(updates|security|backports|proposed)|security' | head -n 1 | cut -d' ' -f1
}

# OpenSuite FOLDER SUITE: reads the suite's package lists into FOLDER and sets suite_options, the options
# that make apt-get use them.
OpenSuite() {
    local folder=$1 suite=$2 archive keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed=""
    archive=$(MachineArchive) || true
    [[ -n $archive ]] || Fail "no Debian archive was found in the apt sources of this machine."
    [[ -f $keyring ]] && signed="[signed-by=$keyring]"
    mkdir -p "$folder"/{lists/partial,cache/archives/partial}
    echo "deb $signed $archive $suite main" >"$folder/sources.list"
    suite_options=(-q
        -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
        -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts=-
        -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache"
        -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=3)
    if [[ $EUID -eq 0 ]]; then suite_options+=(-o APT::Sandbox::User=root); fi
    Quiet "$folder/log" apt-get "${suite_options[@]}" update ||
        Fail "apt could not read the package lists of Debian $suite."
}
