/* SPDX-License-Identifier: ISC */
/* The groups of the driver contract test; each returns the number of failed tests. */
#ifndef TESTS_CONTRACT_CONTRACT_H
#define TESTS_CONTRACT_CONTRACT_H

int contract_test_commands(void);
int contract_test_terminals(void);
int contract_test_files(void);
int contract_test_lifetime(void);
int contract_test_local(void); /* what only the local driver promises */

#endif
