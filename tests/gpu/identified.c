const int identified_value = 1;  /* a library for build_identity_test.cc */
