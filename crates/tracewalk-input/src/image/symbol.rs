//! Single names of an ELF file.

use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// The address and size of a function or variable in an ELF file. The instruction set is not in a function's address.
#[must_use]
pub fn symbol(file: &[u8], name: &str) -> Option<(u64, u64)> {
    let elf = object::File::parse(file).ok()?;
    let symbol = elf.symbols().find(|symbol| symbol.name() == Ok(name) && symbol.is_definition())?;
    let is_code = symbol.kind() == SymbolKind::Text && !elf.is_64();
    Some((if is_code { symbol.address() & !1 } else { symbol.address() }, symbol.size()))
}
