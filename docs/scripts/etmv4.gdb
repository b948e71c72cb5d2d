define etm-on
  # TRCLAR, TRCOSLAR: unlock; units without a lock ignore this
  set *(unsigned *)0xe0041fb0 = 0xc5acce55
  set *(unsigned *)0xe0041300 = 0
  etm-off
  # TRCCONFIGR: no cycle counts (bit 4), timestamps (bit 11) or return stack (bit 12)
  set *(unsigned *)0xe0041010 = 1
  # TRCEVENTCTL0R, TRCEVENTCTL1R: no events
  set *(unsigned *)0xe0041020 = 0
  set *(unsigned *)0xe0041024 = 0
  # TRCSTALLCTLR: stall the core rather than lose trace; 0 if bit 26 of TRCIDR3 (0xe00411ec) is 0
  set *(unsigned *)0xe004102c = 0x10c
  # TRCTSCTLR: no event requests timestamps
  set *(unsigned *)0xe0041030 = 0
  # TRCSYNCPR: synchronise each 1024 bytes; some units ignore this
  set *(unsigned *)0xe0041034 = 0xa
  # TRCTRACEIDR
  set *(unsigned *)0xe0041040 = 2
  # TRCVICTLR: started, always
  set *(unsigned *)0xe0041080 = 0x201
  # TRCVIIECTLR, TRCVISSCTLR: all addresses
  set *(unsigned *)0xe0041084 = 0
  set *(unsigned *)0xe0041088 = 0
  # TRCPRGCTLR: go
  set *(unsigned *)0xe0041004 = 1
end

define etm-off
  # TRCPRGCTLR: being programmed
  set *(unsigned *)0xe0041004 = 0
  # TRCSTATR: wait for IDLE
  while (*(unsigned *)0xe004100c & 1) == 0
  end
end
