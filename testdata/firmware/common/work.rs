//! Ordinary work in Rust: recursion, matches that become tables, calls through vtables and function pointers, iterators
//! and bounds checks.

pub trait Shape {
    fn area(&self) -> u32;
    fn scaled(&self, by: u32) -> u32 {
        self.area().wrapping_mul(by)
    }
}

pub struct Square(pub u32);
pub struct Rectangle(pub u32, pub u32);
pub struct Triangle(pub u32, pub u32);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u32 {
        self.0 * self.0
    }
}

impl Shape for Rectangle {
    #[inline(never)]
    fn area(&self) -> u32 {
        self.0 * self.1
    }

    fn scaled(&self, by: u32) -> u32 {
        if by > 2 { self.area() << 1 } else { self.area() }
    }
}

impl Shape for Triangle {
    #[inline(never)]
    fn area(&self) -> u32 {
        self.0 * self.1 / 2
    }
}

#[inline(never)]
pub fn areas(shapes: &[&dyn Shape], by: u32) -> u32 {
    shapes.iter().map(|shape| shape.scaled(by)).fold(0, u32::wrapping_add)
}

#[derive(Clone, Copy)]
pub enum Token {
    Number(i32),
    Add,
    Subtract,
    Multiply,
    Duplicate,
    Swap,
    Negate,
    Drop,
}

/// Reverse Polish notation; `None` where the stack is too small or too large.
#[inline(never)]
pub fn evaluate(tokens: &[Token]) -> Option<i32> {
    let mut stack = [0_i32; 4];
    let mut depth = 0;
    for token in tokens {
        match *token {
            Token::Number(number) => {
                *stack.get_mut(depth)? = number;
                depth += 1;
            }
            Token::Duplicate => {
                let top = *stack.get(depth.checked_sub(1)?)?;
                *stack.get_mut(depth)? = top;
                depth += 1;
            }
            Token::Negate => {
                let top = stack.get_mut(depth.checked_sub(1)?)?;
                *top = top.wrapping_neg();
            }
            Token::Drop => depth = depth.checked_sub(1)?,
            Token::Swap => {
                let second = depth.checked_sub(2)?;
                stack.get_mut(second..depth)?.reverse();
            }
            Token::Add | Token::Subtract | Token::Multiply => {
                depth = depth.checked_sub(1)?;
                let right = *stack.get(depth)?;
                let left = stack.get_mut(depth.checked_sub(1)?)?;
                *left = match *token {
                    Token::Add => left.wrapping_add(right),
                    Token::Subtract => left.wrapping_sub(right),
                    _ => left.wrapping_mul(right),
                };
            }
        }
    }
    stack.get(depth.checked_sub(1)?).copied()
}

#[inline(never)]
pub fn ackermann(m: u32, n: u32) -> u32 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

#[inline(never)]
pub fn insertion_sort(items: &mut [u32], before: fn(&u32, &u32) -> bool) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && before(&items[at], &items[at - 1]) {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[inline(never)]
pub fn parse(text: &str) -> Option<u32> {
    text.split(',').map(|word| word.trim().parse::<u32>().ok()).sum()
}

/// All of it once.
#[inline(never)]
pub fn everything(round: u32) -> u32 {
    let shapes: [&dyn Shape; 4] =
        [&Square(round), &Rectangle(2, round), &Triangle(round, 6), &Square(3)];
    let tokens = [
        Token::Number(7),
        Token::Duplicate,
        Token::Multiply,
        Token::Number(3),
        Token::Swap,
        Token::Subtract,
        Token::Negate,
        Token::Number(5),
        Token::Drop,
        Token::Number(1),
        Token::Add,
    ];
    let mut items = [9, 3, 7, 1, 8, 2, round, 5];
    insertion_sort(&mut items, if round & 1 == 0 { u32::lt } else { u32::gt });
    let mut result = areas(&shapes, round);
    result = result.wrapping_add(evaluate(&tokens[..tokens.len() - round as usize % 3]).unwrap_or(-1) as u32);
    result = result.wrapping_add(ackermann(2, round & 3));
    result = result.wrapping_add(items.iter().rev().step_by(2).sum());
    result.wrapping_add(parse("12, 30,7").unwrap_or(0)).wrapping_add(parse("1,x").map_or(5, |sum| sum + 1))
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// What the compiler calls, and no library of C is there to give.
///
/// # Safety
/// As for C's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    let mut at = 0;
    while at < bytes {
        // SAFETY: the caller says that both have so many bytes.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
        at += 1;
    }
    to
}
