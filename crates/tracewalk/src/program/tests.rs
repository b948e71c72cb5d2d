use std::string::ToString;

use super::*;

#[test]
fn touching_regions_become_one() {
    let mut program = Program::new();
    program.add(Address::new(0x104), &[5, 6, 7, 8]).unwrap();
    program.add(Address::new(0x10c), &[9]).unwrap();
    program.add(Address::new(0x100), &[1, 2, 3, 4]).unwrap();
    assert_eq!(program.regions().len(), 2);
    assert_eq!(program.code(Address::new(0x102)), Some(&[3, 4, 5, 6, 7, 8][..]));
    assert_eq!(program.word(Address::new(0x102)), Some(0x0605_0403));
    program.add(Address::new(0x108), &[0; 4]).unwrap();
    assert_eq!(program.regions().len(), 1);
    assert_eq!(program.code(Address::new(0x10d)), None);
    assert_eq!(program.code(Address::new(0xff)), None);
}

#[test]
fn overlapping_bytes_must_agree() {
    let mut program = Program::new();
    program.add(Address::new(0x100), &[1, 2, 3, 4]).unwrap();
    program.add(Address::new(0x102), &[3, 4, 5]).unwrap();
    assert_eq!(program.code(Address::new(0x100)), Some(&[1, 2, 3, 4, 5][..]));
    let conflict = program.add(Address::new(0xfe), &[0, 0, 1, 9]);
    assert_eq!(conflict, Err(AddRegionError::Conflict { at: Address::new(0x101) }));
}

#[test]
fn the_last_byte_of_memory_can_be_known_and_nothing_after_it() {
    let mut program = Program::new();
    program.add(Address::new(u64::MAX), &[1]).unwrap();
    assert_eq!(program.code(Address::new(u64::MAX)), Some(&[1][..]));
    let two = program.add(Address::new(u64::MAX), &[1, 2]);
    assert_eq!(two, Err(AddRegionError::PastEndOfMemory { start: Address::new(u64::MAX), bytes: 2 }));
    program.add(Address::new(u64::MAX - 2), &[3, 4]).unwrap();
    assert_eq!(program.code(Address::new(u64::MAX - 2)), Some(&[3, 4, 1][..]));
}

#[test]
fn memory_goes_on_after_32_bits() {
    let mut program = Program::new();
    program.add(Address::new(0xffff_fffe), &[1, 2, 3, 4]).unwrap();
    assert_eq!(program.code(Address::new(0x1_0000_0001)), Some(&[4][..]));
    assert_eq!(program.code(Address::new(1)), None);
}

#[test]
fn code_of_a_context_covers_what_is_visible_everywhere() {
    let mut program = Program::new();
    program.add(Address::new(0x100), &[1; 8]).unwrap();
    program.add_in(Scope::context(ContextId(7)), Address::new(0x104), &[2; 8]).unwrap();
    program.add_in(Scope::vmid(Vmid(1)), Address::new(0x106), &[3; 4]).unwrap();
    let bytes = |context_id: Option<u32>, vmid: Option<u32>| {
        let view = program.view(program.view_in(context_id.map(ContextId), vmid.map(Vmid)));
        assert_eq!(view.regions().len(), 1);
        view.code(Address::new(0x100)).unwrap().to_vec()
    };
    assert_eq!(bytes(None, None), [1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(bytes(Some(8), Some(2)), [1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(bytes(Some(7), None), [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(bytes(None, Some(1)), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]);
    assert_eq!(bytes(Some(7), Some(1)), [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn a_process_of_a_virtual_machine_covers_the_process_and_the_machine() {
    let mut program = Program::new();
    let both = Scope { context_id: Some(ContextId(7)), vmid: Some(Vmid(1)) };
    program.add_in(both, Address::new(0x100), &[3]).unwrap();
    program.add_in(Scope::context(ContextId(7)), Address::new(0x100), &[2]).unwrap();
    program.add_in(Scope::vmid(Vmid(1)), Address::new(0x100), &[1]).unwrap();
    let byte = |context_id: Option<u32>, vmid: Option<u32>| {
        let view = program.view_in(context_id.map(ContextId), vmid.map(Vmid));
        program.view(view).code(Address::new(0x100)).map(|code| code[0])
    };
    assert_eq!(byte(Some(7), Some(1)), Some(3));
    assert_eq!(byte(Some(7), Some(9)), Some(2));
    assert_eq!(byte(Some(9), Some(1)), Some(1));
    assert_eq!(byte(Some(9), None), None);
    let scope = |address| program.scope_at(Some(ContextId(7)), Some(Vmid(1)), Address::from(address));
    assert_eq!((scope(0x100), scope(0x101)), (both, Scope::EVERYWHERE));
    assert!(program.holds(Address::new(0x100)), "in some context");
    assert!(!program.holds(Address::new(0x101)) && !program.holds(Address::new(0xff)));
    assert!(!program.is_empty());
}

#[test]
fn bytes_of_the_same_scope_must_agree_and_views_are_bounded() {
    let mut program = Program::new();
    program.add_in(Scope::context(ContextId(1)), Address::new(0x100), &[1, 2]).unwrap();
    program.add_in(Scope::context(ContextId(2)), Address::new(0x100), &[9, 9]).unwrap();
    let conflict = program.add_in(Scope::context(ContextId(1)), Address::new(0x101), &[3]);
    assert_eq!(conflict, Err(AddRegionError::Conflict { at: Address::new(0x101) }));
    let mut add = |number| program.add_in(Scope::context(ContextId(number)), Address::new(0x100), &[1]);
    assert!((3..=256).all(|number| add(number).is_ok()));
    assert_eq!(add(257), Err(AddRegionError::TooManyViews));
}

#[test]
fn scopes_say_whose_code_it_is() {
    let both = Scope { context_id: Some(ContextId(0x1f)), vmid: Some(Vmid(3)) };
    assert_eq!(Scope::EVERYWHERE.to_string(), "all contexts");
    assert_eq!(Scope::context(ContextId(0x1f)).to_string(), "context ID 0x1f");
    assert_eq!(Scope::vmid(Vmid(3)).to_string(), "VMID 0x3");
    assert_eq!(both.to_string(), "context ID 0x1f of VMID 0x3");
}

#[test]
fn a_region_that_is_refused_changes_nothing() {
    let mut program = Program::new();
    let scope = Scope::context(ContextId(1));
    let past_end = program.add_in(scope, Address::new(u64::MAX - 15), &[0; 32]);
    assert!(matches!(past_end, Err(AddRegionError::PastEndOfMemory { .. })));
    program.add_in(scope, Address::new(0x100), &[]).unwrap();
    assert!(program.is_empty());
    program.add(Address::new(0x100), &[1]).unwrap();
    assert_eq!(program.views().count(), 1, "nothing looks different in any context");
    program.add_in(scope, Address::new(0x100), &[2]).unwrap();
    assert_eq!(
        program.add_in(scope, Address::new(0xff), &[0, 0]),
        Err(AddRegionError::Conflict { at: Address::new(0x100) })
    );
    assert!(!program.holds(Address::new(0xff)));
}

#[test]
fn one_view_too_many_leaves_the_others_usable() {
    let mut program = Program::new();
    let scope = |number| Scope::context(ContextId(number));
    for number in 1..=256 {
        program.add_in(scope(number), Address::new(0x100), &[1]).unwrap();
    }
    assert_eq!(program.add_in(scope(257), Address::new(0x100), &[2]), Err(AddRegionError::TooManyViews));
    program.add(Address::new(0x200), &[3]).unwrap();
    program.add_in(scope(7), Address::new(0x300), &[4]).unwrap();
    let bytes = |number, address| {
        let view = program.view(program.view_in(Some(ContextId(number)), None));
        view.code(Address::new(address)).map(|code| code[0])
    };
    assert_eq!([bytes(7, 0x100), bytes(7, 0x200), bytes(7, 0x300)], [Some(1), Some(3), Some(4)]);
    assert_eq!([bytes(257, 0x100), bytes(257, 0x200), bytes(257, 0x300)], [None, Some(3), None]);
}

#[test]
fn a_builder_makes_what_adding_one_by_one_makes() {
    let code = [
        (Scope::EVERYWHERE, 0x100, [1; 8]),
        (Scope::context(ContextId(7)), 0x104, [2; 8]),
        (Scope::vmid(Vmid(1)), 0x106, [3; 8]),
    ];
    let (mut builder, mut program) = (ProgramBuilder::new(), Program::new());
    for (scope, start, bytes) in code {
        builder.add_in(scope, Address::new(start), &bytes).unwrap();
        program.add_in(scope, Address::new(start), &bytes).unwrap();
    }
    builder.set_vector_table(Address::new(0x100));
    program.set_vector_table(Address::new(0x100));
    let shown = |program: &Program| {
        let view = |(id, scope)| {
            let view = program.view(id);
            let regions = view.regions().iter().map(|region| (region.start(), region.bytes().to_vec()));
            (scope, view.vector_table(), regions.collect::<Vec<_>>())
        };
        program.views().map(view).collect::<Vec<_>>()
    };
    assert_eq!(shown(&builder.build()), shown(&program));
    assert_eq!(shown(&program.clone().into_builder().build()), shown(&program));
}
