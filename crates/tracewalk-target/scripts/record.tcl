# Records what a chip executes, into trace.bin and capture.toml: openocd -f YOUR-BOARD.cfg -c init -f THIS-FILE -c shutdown
proc tw_get {at} { expr {[lindex [read_memory $at 32 1] 0]} }
proc tw_put {at value} { write_memory $at 32 [format 0x%x [expr {$value & 0xffffffff}]] }
proc tw_append {file text} {
    set out [open $file a]
    fconfigure $out -translation binary
    puts -nonewline $out $text
    close $out
}
proc tw_fail {name} { error "$name is not as it has to be" }
proc tw_describe {line} { tw_append capture.toml "$line\n" }
proc tw_begin {} {
    file delete trace.bin capture.toml
    halt
    wait_halt
}
proc tw_note {name at} { tw_describe [format "%s = 0x%x" $name [tw_get $at]] }
proc tw_write {name at value} { tw_put $at $value }
proc tw_set {name at value mask} {
    tw_put $at $value
    if {(([tw_get $at] ^ $value) & $mask) != 0} { tw_fail $name }
}
proc tw_keep {name at {key 0}} {
    global tw_was
    if {![info exists tw_was($at)]} { set tw_was($at) [expr {[tw_get $at] | $key}] }
}
proc tw_change {name at clear set key} {
    tw_keep $name $at $key
    tw_put $at [expr {([tw_get $at] & ~$clear) | $set | $key}]
}
proc tw_restore {name at} {
    global tw_was
    if {[info exists tw_was($at)]} {
        tw_put $at $tw_was($at)
        unset tw_was($at)
    }
}
proc tw_expect {name at mask value} { if {([tw_get $at] & $mask) != $value} { tw_fail $name } }
proc tw_forbid {name at mask value} { if {([tw_get $at] & $mask) == $value} { tw_fail $name } }
proc tw_poll {name at mask value} {
    for {set left 1000} {([tw_get $at] & $mask) != $value} {incr left -1} {
        if {$left == 0} { tw_fail $name }
    }
}
proc tw_run {} {
    echo "Halt the target to end the recording."
    resume
    wait_halt 2000000000
}
proc tw_run_for {milliseconds} {
    resume
    sleep $milliseconds
    halt
    wait_halt
}
proc tw_run_to {address} {
    bp $address 2 hw
    resume
    wait_halt 2000000000
    rbp $address
}
proc tw_read {address bytes} {
    set out [open trace.bin a]
    fconfigure $out -translation binary
    foreach word [read_memory $address 32 [expr {$bytes / 4}]] {
        pack bytes_of_word [expr {$word}] -intle 32
        puts -nonewline $out $bytes_of_word
    }
    close $out
}
proc tw_read_words {at words} {
    for {} {$words > 0} {incr words -1} { tw_read $at 4 }
}
proc tw_read_etb {base} {
    set words [tw_get [expr {$base + 0x18}]]
    set first 0
    if {[tw_get [expr {$base + 0x0c}]] & 1} {
        set first $words
        set words [tw_get [expr {$base + 0x04}]]
    }
    tw_put [expr {$base + 0x14}] $first
    tw_read_words [expr {$base + 0x10}] $words
}
proc tw_read_tmc {base} {
    set width [expr {([tw_get [expr {$base + 0xfc8}]] >> 8) & 7}]
    set group [expr {$width < 2 ? 1 : 1 << ($width - 2)}]
    set words [tw_get [expr {$base + 0x04}]]
    for {set index 0} {$index < $words} {incr index} {
        set word [tw_get [expr {$base + 0x10}]]
        if {$word == 0xffffffff && $index % $group == 0} { break }
        pack bytes_of_word $word -intle 32
        tw_append trace.bin $bytes_of_word
    }
}
proc tw_read_etr {base address bytes} {
    set end [tw_get [expr {$base + 0x18}]]
    if {[tw_get [expr {$base + 0x0c}]] & 1} { tw_read $end [expr {$address + $bytes - $end}] }
    tw_read $address [expr {$end - $address}]
}
proc tw_read_ring {address bytes pointer left of count} {
    set end [tw_get $pointer]
    set rest [expr {[tw_get $left] & $of}]
    if {$rest > 0 && ($count - $rest) * 4 >= $bytes} {
        # Frames keep their places: the oldest is the first whole one.
        set oldest [expr {($end + 15) & ~15}]
        tw_read $oldest [expr {$address + $bytes - $oldest}]
    }
    tw_read $address [expr {$end - $address}]
}
proc tw_read_nothing {} { echo "The trace left through the pins." }

