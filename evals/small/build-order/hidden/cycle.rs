#[path = "../src/order.rs"]
mod order;

fn main() {
    let result = order::order(&[("a", &["b"]), ("b", &["a"])]);
    std::process::exit(i32::from(result.is_ok()));
}
