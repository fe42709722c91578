// SPDX-License-Identifier: Apache-2.0
// Loads the libraries that plateau-worker loads, and ends: what no worker's start can be faster than.
int main() {}
