#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs a command on a terminal of its own, whose bytes go through our stdin and stdout: script(1) makes it.
#
# Arguments: ROWS COLUMNS LAUNCH COMMAND [ARGUMENT ...]
#	LAUNCH      the text of launch.sh, by which the command gets past the shell that script(1) runs
#
# On descriptor 6: "exited STATUS" or "signaled NUMBER". script(1) tells a death by signal as a status above 128,
# so setsid(1) has to be between them. It makes a session that needs a terminal which is no other session's, so
# that of script(1) has to give it up, which a shell cannot do: where there is neither perl nor
# python3, a death by signal is told as a status.
set -u

if ! command -v script >/dev/null 2>&1; then
	printf 'rws: the image has no script(1), which a terminal needs here\r\n'
	echo exited 127 >&6
	exit 0
fi

_rws_rows=$1
_rws_columns=$2
_rws_launch=$3
shift 3

# On the terminal, as the leader of its session. The number is TIOCNOTTY; it comes with a HUP.
# shellcheck disable=SC2016 # expanded there
_rws_settle='
stty sane iutf8 rows "$1" columns "$2"
_rws_supervise=$3
shift 3
if command -v perl >/dev/null 2>&1; then
	exec perl -e "\$SIG{HUP} = q(IGNORE); ioctl(STDIN, 0x5422, 0); \$SIG{HUP} = q(DEFAULT);
	    exec { \$ARGV[0] } @ARGV" sh -c "$_rws_supervise" rws-supervise "$@"
elif command -v python3 >/dev/null 2>&1; then
	exec python3 -c "import fcntl, os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, 0x5422, 0)
for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])" sh -c "$_rws_supervise" rws-supervise "$@"
fi
exec 9>&-
exec "$@"
'

# In a session without a terminal: the parent of the one that gets it. setsid tells of a death by signal on its
# stderr, as in command.sh.
# shellcheck disable=SC2016 # expanded there
_rws_supervise='
exec 7>&1
_rws_said=$(setsid -f -w -c sh -c "exec 2>&7 7>&- 9>&-; exec \"\$@\"" rws-supervise "$@" 2>&1 >&7)
_rws_status=$?
if [ -n "$_rws_said" ]; then
	[ "$_rws_status" -lt 128 ] || _rws_status=$((_rws_status - 128))
	echo "signaled $_rws_status" >&9
else
	echo "exited $_rws_status" >&9
fi
'

# What launch.sh reads. Lengths are in bytes whatever the locale.
words() (
	LC_ALL=C
	if [ -n "${SHELL+set}" ]; then
		printf '%8d%8dSHELL=%s' 1 "$((${#SHELL} + 6))" "$SHELL"
	else
		printf '%8d' 0
	fi
	printf '%8d' "$#"
	for _rws_word; do
		printf '%8d%s' "${#_rws_word}" "$_rws_word"
	done
)

exec 4<&0 5>&1
_rws_verdict=$(
	words sh -c "$_rws_settle" rws-terminal "$_rws_rows" "$_rws_columns" "$_rws_supervise" "$@" | {
		exec 3<&0 0<&4 4<&-
		# shellcheck disable=SC2016 # expanded on the terminal
		SHELL=/bin/sh RWS_LAUNCH=$_rws_launch \
		    script -q -e -f -c 'exec sh -c "$RWS_LAUNCH" rws-launch' /dev/null 9>&1 >&5 5>&- 6>&-
		echo "exited $?"
	}
)
# The first line is exact; the other is all there is without one.
echo "${_rws_verdict%%
*}" >&6
