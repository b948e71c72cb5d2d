define trace-on
  # DEMCR.TRCENA: power to the trace units
  set *(unsigned *)0xe000edfc |= 1 << 24
  # DBGMCU_CR of an STM32F4: four data pins and the clock
  set *(unsigned *)0xe0042004 |= 0xe0
  # TPIU_CSPSR: four pins
  set *(unsigned *)0xe0040004 = 1 << 3
  # TPIU_SPPR: a parallel port
  set *(unsigned *)0xe00400f0 = 0
  # TPIU_FFCR: formatter on
  set *(unsigned *)0xe0040304 = 0x102
  # ETMLAR: unlock
  set *(unsigned *)0xe0041fb0 = 0xc5acce55
  # ETMCR: being programmed, stall the core rather than lose trace
  set *(unsigned *)0xe0041000 = 0xc90
  # ETMTRIGGER: never
  set *(unsigned *)0xe0041008 = 0x406f
  # ETMTEEVR: always
  set *(unsigned *)0xe0041020 = 0x6f
  # ETMTECR1: trace everything
  set *(unsigned *)0xe0041024 = 1 << 24
  # ETMFFRR: stalling is allowed everywhere ...
  set *(unsigned *)0xe0041028 = 1 << 24
  # ETMFFLR: ... when this many bytes or fewer are free
  set *(unsigned *)0xe004102c = 24
  # ETMTRACEIDR
  set *(unsigned *)0xe0041200 = 2
  # ETMCR: go
  set *(unsigned *)0xe0041000 = 0x890
end
