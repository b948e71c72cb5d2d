//! Nothing: the benchmarks are in `stages` (`cargo bench -p tracewalk-benches`), the comparison with OpenCSD is
//! `compare` (`cargo xtask bench`).
