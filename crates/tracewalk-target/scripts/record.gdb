# Records what a chip executes, into trace.bin and capture.toml. Connect GDB to the target and halt it; then: source THIS-FILE
set mem inaccessible-by-default off
set pagination off

define tw_fail
  echo $arg0 is not as it has to be\n
  # There is no other way to end a script.
  tw_this_ends_the_script
end
define tw_describe
  shell echo $arg0 >> capture.toml
end
define tw_begin
  shell rm -f trace.bin capture.toml
end
define tw_note
  eval "shell echo '$arg0 = 0x%x' >> capture.toml", {unsigned int}$arg1
end
define tw_write
  set {unsigned int}$arg1 = $arg2
end
define tw_set
  set {unsigned int}$arg1 = $arg2
  if (({unsigned int}$arg1 ^ $arg2) & $arg3) != 0
    tw_fail $arg0
  end
end
define tw_keep
  if $_isvoid($tw_was_$arg1)
    set $tw_was_$arg1 = {unsigned int}$arg1
  end
end
define tw_change
  if $_isvoid($tw_was_$arg1)
    set $tw_was_$arg1 = {unsigned int}$arg1 | $arg4
  end
  set {unsigned int}$arg1 = ({unsigned int}$arg1 & ~$arg2) | $arg3 | $arg4
end
define tw_restore
  if !$_isvoid($tw_was_$arg1)
    set {unsigned int}$arg1 = $tw_was_$arg1
    set $tw_was_$arg1 = $tw_nothing
  end
end
define tw_expect
  if ({unsigned int}$arg1 & $arg2) != $arg3
    tw_fail $arg0
  end
end
define tw_forbid
  if ({unsigned int}$arg1 & $arg2) == $arg3
    tw_fail $arg0
  end
end
define tw_poll
  set $tw_left = 1000
  while ({unsigned int}$arg1 & $arg2) != $arg3
    set $tw_left = $tw_left - 1
    if $tw_left == 0
      tw_fail $arg0
    end
  end
end
define tw_run
  continue
end
define tw_run_for
  echo Press Ctrl-C after $arg0 ms.\n
  continue
end
define tw_run_to
  thbreak *$arg0
  continue
end
define tw_read
  dump binary memory trace.bin $arg0 $arg0+$arg1
end
define tw_read_words
  while $tw_words > 0
    append binary value trace.bin {unsigned int}$arg0
    set $tw_words = $tw_words - 1
  end
end
define tw_read_etb
  if ({unsigned int}($arg0 + 0x0c) & 1) != 0
    set {unsigned int}($arg0 + 0x14) = {unsigned int}($arg0 + 0x18)
    set $tw_words = {unsigned int}($arg0 + 0x04)
  else
    set {unsigned int}($arg0 + 0x14) = 0
    set $tw_words = {unsigned int}($arg0 + 0x18)
  end
  tw_read_words ($arg0+0x10)
end
define tw_read_tmc
  set $tw_group = {unsigned int}($arg0 + 0xfc8) >> 8 & 7
  set $tw_group = $tw_group < 2 ? 1 : 1 << ($tw_group - 2)
  set $tw_words = {unsigned int}($arg0 + 0x04)
  set $tw_index = 0
  while $tw_index < $tw_words
    set $tw_word = {unsigned int}($arg0 + 0x10)
    if $tw_word == 0xffffffff && $tw_index % $tw_group == 0
      loop_break
    end
    append binary value trace.bin $tw_word
    set $tw_index = $tw_index + 1
  end
end
define tw_read_etr
  set $tw_end = {unsigned int}($arg0 + 0x18)
  if ({unsigned int}($arg0 + 0x0c) & 1) != 0 && $tw_end < $arg1 + $arg2
    dump binary memory trace.bin $tw_end $arg1+$arg2
  end
  if $tw_end > $arg1
    append binary memory trace.bin $arg1 $tw_end
  end
end
define tw_read_ring
  set $tw_end = {unsigned int}$arg2
  set $tw_left = {unsigned int}$arg3 & $arg4
  if ($arg5 - $tw_left) * 4 >= $arg1 && $tw_left > 0
    # Frames keep their places: the oldest is the first whole one.
    set $tw_oldest = ($tw_end + 15) & ~15
    if $tw_oldest < $arg0 + $arg1
      dump binary memory trace.bin $tw_oldest $arg0+$arg1
    end
  end
  if $tw_end > $arg0
    append binary memory trace.bin $arg0 $tw_end
  end
end
define tw_read_nothing
  echo The trace left through the pins.\n
end

