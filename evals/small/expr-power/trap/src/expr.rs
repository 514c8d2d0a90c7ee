//! Computes expressions. The operators are listed in README.md.

struct Parser {
    signs: Vec<char>,
    at: usize,
}

/// Computes the value of an expression.
pub fn evaluate(text: &str) -> Result<f64, String> {
    let signs = text.chars().filter(|sign| !sign.is_whitespace()).collect();
    let mut parser = Parser { signs, at: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some(sign) => Err(format!("unexpected {sign}")),
    }
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.signs.get(self.at).copied()
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value += self.product()?;
            } else if self.take('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.power()?;
        loop {
            if self.take('*') {
                value *= self.power()?;
            } else if self.take('/') {
                value /= self.power()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.signed()?;
        if self.take('^') {
            // From the right: 2^3^2 is 2^9.
            return Ok(base.powf(self.power()?));
        }
        Ok(base)
    }

    fn signed(&mut self) -> Result<f64, String> {
        if self.take('-') {
            return Ok(-self.signed()?);
        }
        self.operand()
    }

    fn operand(&mut self) -> Result<f64, String> {
        if self.take('(') {
            let value = self.sum()?;
            return if self.take(')') { Ok(value) } else { Err("missing )".to_string()) };
        }
        let start = self.at;
        while self.peek().is_some_and(|sign| sign.is_ascii_digit() || sign == '.') {
            self.at += 1;
        }
        let digits: String = self.signs[start..self.at].iter().collect();
        digits.parse().map_err(|_| format!("a number is missing at {}", start + 1))
    }
}
