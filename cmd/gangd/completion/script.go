package completion

// head opens the function that says what a command has: $1 is its name, $2 the option whose
// value is being typed. It sets _options, _words and _kind.
const head = `# bash completion of Slurm's names for gangd's programs.
# Made by: gangd slurm-completion

_gangd_slurm_table() {
	_options= _words=none _kind=
	case $1 in
`

// tail closes it. A value may be a list with commas: what stands before the last one is kept.
// The word behind "=" is a word of its own in bash.
const tail = `	esac
}

_gangd_slurm_names() {
	case $1 in
	partition) sinfo -h -a -o %R ;;
	job) squeue -h -a -r -o %i ;;
	step) squeue -h -s -a -o %i ;;
	node) sinfo -h -a -N -o %N ;;
	reservation) scontrol -o show reservation | sed -n 's/^ReservationName=\([^ ]*\).*/\1/p' ;;
	user) compgen -u ;;
	state) echo PENDING RUNNING COMPLETING COMPLETED CANCELLED FAILED TIMEOUT PREEMPTED NODE_FAIL OUT_OF_MEMORY DEADLINE ;;
	nodestate) echo alloc down drain draining drained idle maint mixed resv unknown ;;
	command) compgen -c -- "$2" ;;
	esac 2>/dev/null
}

_gangd_slurm() {
	local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD option= keep= names _options _words _kind i
	if [[ $cur == = ]]; then
		cur= option=${COMP_WORDS[at-1]}
	elif [[ at -gt 1 && ${COMP_WORDS[at-1]} == = ]]; then
		option=${COMP_WORDS[at-2]}
	elif [[ ${COMP_WORDS[at-1]} == -?* ]]; then
		option=${COMP_WORDS[at-1]}
	fi
	_gangd_slurm_table "${1##*/}" "$option"
	COMPREPLY=()
	if [[ -z $_kind && $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$_options" -- "$cur"))
		[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
		return
	fi
	if [[ -z $_kind ]]; then
		_kind=$_words
		if [[ $_words == scontrol ]]; then
			_gangd_slurm_scontrol
			return
		fi
	fi
	case $_kind in
	none) return ;;
	file) compopt -o default 2>/dev/null; return ;;
	esac
	if [[ $cur == *,* ]]; then
		keep=${cur%,*}, cur=${cur##*,}
	fi
	names=$(_gangd_slurm_names "$_kind" "$cur")
	COMPREPLY=($(compgen -P "$keep" -W "$names" -- "$cur"))
	[[ $_kind == command ]] && compopt -o default 2>/dev/null
}

# The words of scontrol: a command, what it shows or changes, and its name.
_gangd_slurm_scontrol() {
	local verb= entity= before=0 names=
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -* ]] && continue
		before=$((before + 1))
		[[ $before == 1 ]] && verb=${COMP_WORDS[i]}
		[[ $before == 2 ]] && entity=${COMP_WORDS[i]}
	done
	case $before.$verb.$entity in
	0.*) names=$_gangd_slurm_keywords ;;
	1.show.*) names=$_gangd_slurm_entities ;;
	1.write.*) names=batch_script ;;
	*.show.job | *.show.jobs | 2.write.* | *.hold.* | *.uhold.* | *.holdu.* | *.release.* | \
	*.requeue.* | *.requeuehold.* | 1.notify.* | 1.wait_job.* | 1.listpids.*)
		names=$(_gangd_slurm_names job) ;;
	*.show.step | *.show.steps) names=$(_gangd_slurm_names step) ;;
	*.show.node | *.show.nodes) names=$(_gangd_slurm_names node) ;;
	*.show.partition | *.show.partitions) names=$(_gangd_slurm_names partition) ;;
	*.show.reservation*) names=$(_gangd_slurm_names reservation) ;;
	1.update.*) names="JobId= NodeName= ReservationName=" ;;
	1.create.* | 1.delete.*) names="reservation ReservationName=" ;;
	esac
	COMPREPLY=($(compgen -W "$names" -- "$cur"))
	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
`
