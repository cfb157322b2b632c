//! The Discord link: gateway, REST, personas, cards, ingress and delivery.
